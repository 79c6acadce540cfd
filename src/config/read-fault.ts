// Why a file could not be read, in words.

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: "does not exist",
  ENOTDIR: "does not exist",
  EISDIR: "is a folder",
  EACCES: "may not be read by this user",
  EPERM: "may not be read by this user",
};

export function readFault(file: string, error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  return `${file} ${REASONS[code] ?? `could not be read (${code === "" ? "unknown reason" : code})`}`;
}
