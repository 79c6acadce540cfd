// A strict parser of Prometheus' text format of metrics. Pure.

export type Sample = {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
};

const NAME = "[a-zA-Z_:][a-zA-Z0-9_:]*";
const LABEL = `[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\\\\n]|\\\\["\\\\n])*"`;
const VALUE = "[+-]?(?:\\d+(?:\\.\\d+)?(?:[eE][+-]?\\d+)?|Inf)|NaN";
const SAMPLE = new RegExp(`^(${NAME})(?:\\{((?:${LABEL}(?:,${LABEL})*)?)\\})? (${VALUE})(?: \\d+)?$`);
const COMMENT = new RegExp(`^# (?:HELP ${NAME} .*|TYPE ${NAME} (?:counter|gauge|histogram|summary|untyped))$`);

/** Throws at the first line that is neither a sample nor a comment. */
export function readMetrics(text: string): readonly Sample[] {
  return text
    .split("\n")
    .filter((line) => line !== "" && !COMMENT.test(line))
    .map((line) => {
      const [, name, labels = "", value] = SAMPLE.exec(line) ?? [];
      if (name === undefined) throw new Error(`no metric: ${JSON.stringify(line)}`);
      const pairs = [...labels.matchAll(/([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g)].map(([, label = "", quoted = ""]) => [
        label,
        quoted.replaceAll(/\\(.)/g, (_, letter) => (letter === "n" ? "\n" : letter)),
      ]);
      return { name, labels: Object.fromEntries(pairs), value: Number(value?.replace("Inf", "Infinity")) };
    });
}
