// What a secret can't be, in words that repeat nothing of it. Pure.

import { SCHEME_AND_KEY } from "./fault.ts";

/** Far longer than any secret, which has to fit into a header: more is another file. */
const LENGTH_MAX = 4096;

export function quotesFault(secret: string, word: string): string | undefined {
  return /^["'`]|["'`]$/.test(secret) ? `looks quoted: remove the quotes around the ${word}` : undefined;
}

export function tooLongFault(secret: string): string | undefined {
  const { length } = [...secret];
  return length > LENGTH_MAX ? `holds ${length} characters: expected at most ${LENGTH_MAX}` : undefined;
}

/** Of what stands in a header as it is; `aside` says more of the scheme it is sent with. */
export function headerFault(secret: string, word: string, aside = ""): string | undefined {
  const quotes = quotesFault(secret, word);
  if (quotes !== undefined) return quotes;
  const scheme = SCHEME_AND_KEY.exec(secret)?.[1];
  if (scheme !== undefined) return `begins with the word "${scheme}": remove it, the ${word} stands alone${aside}`;
  if (/\s/.test(secret)) return `holds a space or line break: expected the ${word} alone, on one line`;
  if (!/^[\x21-\x7e]+$/.test(secret)) {
    return `holds a control character or one outside ASCII: expected the ${word} alone, as it was shown`;
  }
  return tooLongFault(secret);
}
