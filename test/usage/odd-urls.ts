/** URLs and expressions that are costly to match with each other. */

export type Random = (bound: number) => number;

/**
 * Anchors, word boundaries, folding, classes, counts, empty matches, line ends, non-ASCII; with literals and
 * without.
 */
export const EXPRESSIONS = [
  'abc',
  'a',
  'rest/v1',
  'ffff',
  '日本',
  'é',
  '.',
  '',
  '^$',
  '^https',
  'x$',
  '[0-9a-f]{4}$',
  '\\babc\\b',
  '\\Bbc',
  '(?i)ABC.*REST',
  '(?m)^b|c$',
  '\\Ahttps?://(abc|xyz)\\.',
  'a\\z',
  '[^a]$',
  '(abc|日本)+/',
  'a{3,5}.?x',
  '[a-f]{2}[0-9]{2}.*[0-9]z?$',
  '(a|b)*c.{3}[0-9]',
  '\\d+-\\d+',
  '[[:upper:]]',
  '\\x{e9}|q',
  '(?s)a.b',
  'v1/[0-9a-f]{8}-',
  '-[0-9]{4}-',
  '-.*-.*-.*-.*7$',
  '^[^-]*$',
  'webp',
];

/**
 * Neighbours that share much and little, digits in runs of all lengths, URLs with few bytes and with very
 * many.
 */
export function drawUrl(random: Random): string {
  const pick = (choices: readonly string[]) => choices[random(choices.length)];
  const host = pick(['abc', 'abcd', 'xyz', 'é', 'bc', '日本', '']);
  const path = pick(['/rest/v1/', '/rest/v1/abc', '/auth', '/', '', '/日本', '/a\nb']);
  const hex = (length: number) => Array.from({ length }, () => '0123456789abcdef'[random(16)]).join('');
  const uuid = () => `${hex(8)}-${hex(4)}-${hex(4)}-${hex(4)}-${hex(12)}`;
  const digits = hex(random(random(20) === 0 ? 600 : 40));
  const end = pick([
    uuid(),
    `${uuid()}.webp?width=640`,
    `-${hex(4)}-${hex(4)}`,
    '',
    'x',
    '-12',
    'F',
    'é',
    'aaaax',
    `?${'long'.repeat(random(200))}`,
  ]);
  return random(50) === 0 ? '' : `https://${host}${path}${digits}${end}`;
}
