// The settings of a server that the test run starts itself.

/**
 * Nothing has to survive a power cut. Everything that reaches the server is logged, so that a leaked secret can be found there. The
 * server has the time zone of the test run, so that code that depends on the server's time zone fails in another one.
 */
export function postgresFlags(timeZone: string | undefined): readonly string[] {
  const settings = [
    "fsync=off",
    "full_page_writes=off",
    "max_connections=200",
    // Read back in server-log.ts.
    "log_line_prefix=%m [%p] <%d> ",
    "log_statement=all",
    "log_parameter_max_length=-1",
    "log_parameter_max_length_on_error=-1",
    `timezone=${timeZone ?? "UTC"}`,
  ];
  return settings.flatMap((setting) => ["-c", setting]);
}
