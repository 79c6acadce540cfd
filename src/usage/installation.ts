// What tells several configurations on one database apart.

/** The installation of a configuration that names none, and of all that was stored before there were several. */
export const DEFAULT_INSTALLATION = "default";
