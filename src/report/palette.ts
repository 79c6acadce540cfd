// The colours of a page, for light and for dark. Pure.
//
// Text stands out from its ground by 4.5 to 1 or more, bars and marks by 3 to 1, and any two series differ for people who
// see no red, green or blue: the tests calculate all three.

export type Scheme = {
  /** The ground, and a step away from it. */
  readonly paper: string;
  readonly wash: string;
  readonly line: string;
  readonly ink: string;
  readonly soft: string;
  readonly accent: string;
  readonly good: string;
  readonly warn: string;
  readonly bad: string;
  /** The ground of a notice that nothing, or something, is wrong. */
  readonly goodWash: string;
  readonly badWash: string;
  /** A complete day of the coverage map: there are many, so they are pale. */
  readonly complete: string;
  /** The hatching of days whose numbers are not complete. */
  readonly hatch: string;
  readonly rest: string;
  readonly series: readonly string[];
};

export const LIGHT: Scheme = {
  paper: "#fcfbf9",
  wash: "#f3f1ed",
  line: "#dedad3",
  ink: "#1d2125",
  soft: "#575d63",
  accent: "#2463ad",
  good: "#1f6b45",
  warn: "#8a5300",
  bad: "#a3262a",
  goodWash: "#edf4ee",
  badWash: "#fbeeea",
  complete: "#c9d8e6",
  hatch: "#8a9097",
  rest: "#5b5f63",
  series: ["#2463ad", "#cf7a1c", "#0c9ca6", "#701a3b", "#a279e5", "#92392a", "#5c8865", "#462e76"],
};

export const DARK: Scheme = {
  paper: "#15181c",
  wash: "#1d2126",
  line: "#343a41",
  ink: "#e9e7e3",
  soft: "#a9afb6",
  accent: "#7db2ee",
  good: "#7cc9a0",
  warn: "#e5ae5e",
  bad: "#f2938c",
  goodWash: "#18251f",
  badWash: "#2c1c1b",
  complete: "#2f4660",
  hatch: "#7f868d",
  rest: "#a2a6ab",
  series: ["#5b9fe6", "#ea9943", "#608e8d", "#fcbbba", "#8150b7", "#e3ee8b", "#d4690f", "#1c7273"],
};

/** The scheme as custom properties of CSS: `--ink`, `--good-wash`, `--series-1`. */
export function customProperties({ series, ...colours }: Scheme): string {
  const named = Object.entries(colours).map(([name, colour]): [string, string] => [cssName(name), colour]);
  const numbered = series.map((colour, i): [string, string] => [`series-${i + 1}`, colour]);
  return [...named, ...numbered].map(([name, colour]) => `--${name}:${colour};`).join("");
}

function cssName(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
