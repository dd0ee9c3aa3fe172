/**
 * Expressions that make a backtracking matcher take for ever, the URLs that they do it on, and, for each
 * expression, a linear search that says what it must find.
 */

import { Random } from '../src/demo/random.js';

export interface EvilExpression {
  readonly text: string;
  /** Whether a URL is to be found; null: the expression is to be refused. */
  readonly finds: ((url: string) => boolean) | null;
}

export const EVIL_EXPRESSIONS: readonly EvilExpression[] = [
  { text: '(a+)+$', finds: (url) => url.endsWith('a') },
  { text: '(.{0,900})[yz]$', finds: (url) => /[yz]$/.test(url) },
  { text: '(x+x+)+y', finds: (url) => url.includes('xxy') },
  // After `https:` stands no letter.
  { text: '^(([a-z])+.)+[A-Z]([a-z])+$', finds: () => false },
  { text: '(.*a){20}', finds: (url) => url.split('a').length > 20 },
  { text: '(a|aa|a?a)+!?z$', finds: (url) => /a!?z$/.test(url) },
  { text: '([a-z]*)*=', finds: (url) => url.includes('=') },
  { text: '[a-m].{400}[yz]$', finds: (url) => /[a-m]$/.test(url.slice(0, -401)) && /[yz]$/.test(url) },
  { text: '(.*x.*a.*x.*b){3}', finds: (url) => hasInTurn(url, 'xaxb'.repeat(3)) },
  { text: '(?i)(q|Q|qq|.q)*w(e.*)*y$', finds: (url) => /w(e.*)?y$/i.test(url) },
  { text: '((a{1,99}){1,99}){1,99}', finds: null },
  { text: '(.{1,1000}){1,1000}x', finds: null },
  { text: `${'.{0,900}'.repeat(8)}z`, finds: null },
];

/** Whether the letters stand in the URL in this order, whatever is between them. */
function hasInTurn(url: string, letters: string): boolean {
  let at = -1;
  for (const letter of letters) {
    at = url.indexOf(letter, at + 1);
    if (at < 0) return false;
  }
  return true;
}

const TAILS = ['!', 'y', '!', 'a', '!', 'z', '!', '!xxy', '!=', '!'];

/**
 * Distinct, of about so many characters: long runs of one letter and of few letters, which end in what spoils
 * a match.
 */
export function evilUrls(project: string, count: number, length: number, seed: number): string[] {
  const random = new Random(seed);
  return Array.from({ length: count }, (_, i) => {
    const head = `https://${project}.example.co/rest/v1/${i}/`;
    const tail = TAILS[random.below(TAILS.length)];
    const bodyLength = Math.max(1, length - head.length - tail.length);
    return head + drawBody(random, bodyLength) + tail;
  });
}

function drawBody(random: Random, length: number): string {
  switch (random.below(4)) {
    case 0:
      return 'a'.repeat(length);
    case 1:
      return 'x'.repeat(length);
    case 2:
      return 'ax'.repeat(length / 2);
    default:
      return random.letters(length);
  }
}
