// Calculates what style.ts promises: contrasts as WCAG 2 defines them, and the differences between colours as people with each kind
// of colour blindness see them.

import { expect, test } from "vitest";
import { customProperties, DARK, LIGHT, type Scheme } from "../../src/show/style.ts";

const SCHEMES: readonly [string, Scheme][] = [
  ["light", LIGHT],
  ["dark", DARK],
];

test.each(SCHEMES)(
  "in the %s scheme every text contrasts with every background it is on by at least 4.5 to 1",
  (_, scheme) => {
    const { paper, wash, badWash, ink, soft, accent, good, warn, bad } = scheme;
    for (const ground of [paper, wash, badWash]) {
      for (const text of [ink, soft, accent]) expect(contrast(text, ground)).toBeGreaterThanOrEqual(4.5);
    }
    for (const text of [good, warn, bad]) expect(contrast(text, paper)).toBeGreaterThanOrEqual(4.5);
    expect(contrast(bad, badWash)).toBeGreaterThanOrEqual(4.5);
  },
);

test.each(SCHEMES)(
  "in the %s scheme every bar and mark contrasts with the background by at least 3 to 1",
  (_, scheme) => {
    const { paper, series, rest, hatch, accent, warn, bad } = scheme;
    for (const mark of [...series, rest, hatch, accent, warn, bad])
      expect(contrast(mark, paper)).toBeGreaterThanOrEqual(3);
  },
);

test.each(SCHEMES)(
  "in the %s scheme marks of days that are not complete contrast with complete days by at least 3 to 1",
  (_, scheme) => {
    for (const mark of [scheme.warn, scheme.bad]) expect(contrast(mark, scheme.complete)).toBeGreaterThanOrEqual(3);
  },
);

test.each(SCHEMES)(
  "in the %s scheme the colours of any two series differ for every kind of vision, those of neighbours more",
  (_, { series, rest }) => {
    const colours = [...series, rest];
    for (const [i, one] of colours.entries()) {
      for (const [j, other] of colours.slice(i + 1).entries()) {
        expect(difference(one, other), `${one} ${other}`).toBeGreaterThan(j === 0 ? 0.11 : 0.08);
      }
    }
  },
);

test("the custom properties have CSS names", () => {
  const properties = customProperties(LIGHT);
  expect(properties).toContain(`--bad-wash:${LIGHT.badWash};`);
  expect(properties).toContain(`--series-8:${LIGHT.series[7]};`);
});

type Triple = readonly [number, number, number];

function linear(hex: string): Triple {
  const channel = (at: number): number => {
    const value = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return [channel(1), channel(3), channel(5)];
}

function contrast(one: string, other: string): number {
  const [dark = 0, light = 0] = [one, other]
    .map((hex) => dot([0.2126, 0.7152, 0.0722], linear(hex)) + 0.05)
    .sort((a, b) => a - b);
  return light / dark;
}

/** Matrices of Machado, Oliveira and Fernandes 2009, full strength: normal vision, protanopia, deuteranopia, tritanopia. */
const SIGHTS: readonly (readonly [Triple, Triple, Triple])[] = [
  [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
  [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  [
    [1.255528, -0.076749, -0.178779],
    [-0.078411, 0.930809, 0.147602],
    [0.004733, 0.691367, 0.3039],
  ],
];

/** The smallest distance that any of SIGHTS sees, in OKLab, where black and white are 1 apart. */
function difference(one: string, other: string): number {
  return Math.min(
    ...SIGHTS.map((sight) => {
      const [a, b] = [one, other].map((hex) => oklab(seen(sight, linear(hex))));
      return Math.hypot(...(a ?? []).map((value, i) => value - (b?.[i] ?? 0)));
    }),
  );
}

function seen([red, green, blue]: readonly [Triple, Triple, Triple], colour: Triple): Triple {
  const clamped = (row: Triple) => Math.min(1, Math.max(0, dot(row, colour)));
  return [clamped(red), clamped(green), clamped(blue)];
}

function oklab(colour: Triple): Triple {
  const cones: Triple = [
    Math.cbrt(dot([0.4122214708, 0.5363325363, 0.0514459929], colour)),
    Math.cbrt(dot([0.2119034982, 0.6806995451, 0.1073969566], colour)),
    Math.cbrt(dot([0.0883024619, 0.2817188376, 0.6299787005], colour)),
  ];
  return [
    dot([0.2104542553, 0.793617785, -0.0040720468], cones),
    dot([1.9779984951, -2.428592205, 0.4505937099], cones),
    dot([0.0259040371, 0.7827717662, -0.808675766], cones),
  ];
}

function dot(one: Triple, other: Triple): number {
  return one[0] * other[0] + one[1] * other[1] + one[2] * other[2];
}
