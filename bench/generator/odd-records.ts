/**
 * Small records in every form that the contract allows, and in some that it does not: all spellings of a
 * timestamp, objects nested in arrays at every level, absent pieces, arrays of entries, and records that
 * nothing can be done with.
 */

import type { Random } from '../../src/demo/random.js';

export interface OddOptions {
  /** Few, so that entries meet: the first is drawn more often than the others together. */
  readonly projects: readonly string[];
  readonly functionIds: readonly string[];
  /** How execution times are spread. */
  readonly timeShape: TimeShape;
  /** The share of entries in unusual forms; the rest is as plain as real traffic. */
  readonly oddShare: number;
  /** Extra bytes in each edge entry, at most: for tests of what is cut by size. Default 0. */
  readonly fillerBytes?: number;
}

export const TIME_SHAPES = [
  'log-normal',
  'rising',
  'falling',
  'two-humped',
  'heavy-tailed',
  'few-values',
] as const;
export type TimeShape = (typeof TIME_SHAPES)[number];

/**
 * One stream of odd records: what it gives depends on the random source, the options and how much it gave
 * before.
 */
export class OddRecords {
  readonly #random: Random;
  readonly #options: OddOptions;
  #timesDrawn = 0;
  #oddNames = 0;

  constructor(random: Random, options: OddOptions) {
    this.#random = random;
    this.#options = options;
  }

  /**
   * JSON text of an edge entry. `timestampUs` null leaves the member out, so that the record's own time
   * counts.
   */
  edge(timestampUs: number | null): string {
    const random = this.#random;
    const odd = random.chance(this.#options.oddShare);
    const members: string[] = [];
    if (!odd || random.chance(0.7)) members.push(`"id":${JSON.stringify(drawId(random))}`);
    const names = this.#nextNames(odd);
    if (timestampUs !== null) members.push(`"${names.time}":${timestampText(random, timestampUs, odd)}`);
    members.push(`"project":${JSON.stringify(drawProject(random, this.#options.projects))}`);
    members.push(...messageMembers(random, odd, names.message));
    if (random.chance(0.5)) {
      members.push(`"project_tier":"${random.pick(['FREE', 'PRO', 'PAYG', 'ENTERPRISE', 'free', ''])}"`);
    }
    const metadata = edgeMetadata(random, this.#options, odd);
    if (metadata !== null) members.push(`"metadata":${metadata}`);
    return objectText(random, members, odd, timestampUs === null ? [] : names.more);
  }

  /** JSON text of a relay entry; of `timestampUs` as above. */
  relay(timestampUs: number | null): string {
    const random = this.#random;
    const odd = random.chance(this.#options.oddShare);
    const members: string[] = [];
    if (random.chance(0.5)) members.push(`"id":${JSON.stringify(drawId(random))}`);
    const names = this.#nextNames(odd);
    if (timestampUs !== null) members.push(`"${names.time}":${timestampText(random, timestampUs, odd)}`);
    if (random.chance(0.3)) members.push(...messageMembers(random, odd, names.message));
    const inner = [`"project_ref":${JSON.stringify(drawProject(random, this.#options.projects))}`];
    if (!odd || random.chance(0.7)) inner.push(`"function_id":"${random.pick(this.#options.functionIds)}"`);
    if (!odd || random.chance(0.8)) inner.push(`"execution_time_ms":${this.#executionTimeText(odd)}`);
    const response = objectText(random, [`"status_code":${drawStatus(random)}`, '"headers":{"a":"x"}'], odd);
    if (!odd || random.chance(0.7)) inner.push(`"response":${nested(random, response, odd)}`);
    members.push(`"metadata":${nested(random, objectText(random, inner, odd), odd)}`);
    return objectText(random, members, odd, timestampUs === null ? [] : names.more);
  }

  /**
   * What time and message are called, and members that don't count beside them. Dealt in turn, so that a seed
   * draws all else as it would without.
   */
  #nextNames(odd: boolean): OddNames {
    if (!odd) return PLAIN_NAMES;
    const turn = this.#oddNames++;
    const rank = TIME_RANKS[turn % TIME_RANKS.length];
    const more: string[] = [];
    if (rank > 0 && turn % 3 === 0) more.push('"timestamp":null');
    if (rank < 3 && turn % 4 === 0) more.push(`"${TIME_NAMES[rank + 1]}":"no time"`);
    if (turn % 5 === 0) more.push('"msg":"last"');
    return { time: TIME_NAMES[rank], message: ['message', 'log', 'msg'][(turn % 4) % 3], more };
  }

  #executionTimeText(odd: boolean): string {
    if (odd) return this.#random.pick(ODD_EXECUTION_TIMES);
    this.#timesDrawn += 1;
    return String(drawExecutionTime(this.#random, this.#options.timeShape, this.#timesDrawn));
  }
}

interface OddNames {
  readonly time: string;
  readonly message: string;
  readonly more: readonly string[];
}
const PLAIN_NAMES: OddNames = { time: 'timestamp', message: 'message', more: [] };
const TIME_NAMES = ['timestamp', 'date', '@timestamp', 'time'];
const TIME_RANKS = [0, 0, 1, 0, 2, 0, 3];

const ODD_EXECUTION_TIMES = [
  'null',
  '"12"',
  'true',
  '0',
  '-0',
  '1e3',
  '0.1',
  '1.5E-3',
  '-4',
  '123456.789',
  '[5]',
  '1e400',
] as const;

/** What each unusable record is: bytes as text, and null for a tombstone. `timestampUs` is a usable time. */
export function unusableText(random: Random, kind: 'edge' | 'relay', timestampUs: number): string | null {
  const usable = kind === 'edge' ? '"project":"p"' : '"metadata":{"project_ref":"p"}';
  const stamp = `"timestamp":${timestampUs}`;
  return random.pick<string | null>([
    null,
    '',
    '{',
    '[{]',
    'null',
    '17',
    '"text"',
    'not json',
    `{${stamp}}`,
    `{${stamp},"project":"","metadata":{"project_ref":""}}`,
    `{${stamp},"project":7,"metadata":{"project_ref":{}}}`,
    `{${stamp},"metadata":[]}`,
    `{"timestamp":"yesterday",${usable}}`,
    `{"timestamp":"2026-13-01T00:00:00Z",${usable}}`,
    `{"timestamp":true,${usable}}`,
    `{"timestamp":{},${usable}}`,
    `{"timestamp":1,${usable}}`,
    `{"date":"yesterday",${usable},"time":${timestampUs}}`,
    `{"@timestamp":[${timestampUs}],${usable},"timestamp":null}`,
    `{"timestamp":"4102444800",${usable}}`,
    `{${stamp},${usable}}trailing`,
    `[1,null,"x",[],{${stamp},${usable}},{}]`,
    '[]',
    `{${stamp},${usable.replace('"p"', `"${'long-name'.repeat(120)}"`)}}`,
    `{${stamp},"metadata":{"project_ref":"p","a":${'['.repeat(100)}${']'.repeat(100)}},"project":"p"}`,
  ]);
}

function drawProject(random: Random, projects: readonly string[]): string {
  return random.chance(0.6) ? projects[0] : random.pick(projects);
}

function drawId(random: Random): string {
  if (random.chance(0.8)) return random.hex8();
  // Few different ones, so that entries with one id and one timestamp meet.
  return random.pick(['a', 'b', 'c', 'ä€😀', 'say "hi"\\\n', '\u0000\u001f\u007f', '', '\ud800 alone']);
}

function messageMembers(random: Random, odd: boolean, name: string): string[] {
  if (!odd) return [`"event_message":"GET | ${random.below(600)}"`];
  const members = random.pick([
    [],
    ['"message":"only a message"'],
    ['"message":"second"', '"event_message":"first"'],
    ['"event_message":null', '"message":"the other"'],
    ['"event_message":7'],
    ['"event_message":""', '"message":"not empty"'],
    ['"event_message":"\\u00e4\\ud83d\\ude00 \\"quoted\\" \\/ <b>"'],
    ['"event_message":"ä😀"'],
  ]);
  return members.map((member) => member.replace('"message":', `"${name}":`));
}

/**
 * µs in any of the forms that keep at least whole seconds; a form that cuts the fraction gives an earlier
 * time.
 */
function timestampText(random: Random, timestampUs: number, odd: boolean): string {
  if (!odd) return String(timestampUs);
  const seconds = Math.floor(timestampUs / 1_000_000);
  const ms = Math.floor(timestampUs / 1_000);
  const fraction = String(timestampUs - seconds * 1_000_000).padStart(6, '0');
  const iso = new Date(seconds * 1_000).toISOString().slice(0, 19);
  const shifted = new Date(seconds * 1_000 + 19_800_000).toISOString().slice(0, 19);
  const nanoseconds = `${timestampUs}${String(random.below(1_000)).padStart(3, '0')}`;
  return random.pick([
    String(timestampUs),
    `"${timestampUs}"`,
    String(ms),
    `"${ms}"`,
    String(seconds),
    `"${seconds}"`,
    nanoseconds,
    `"${nanoseconds}"`,
    `"${iso}.${fraction}Z"`,
    `"${iso}.${fraction}789Z"`,
    `"${iso}.${fraction}"`,
    `"${iso}Z"`,
    `"${iso}.5Z"`,
    `"${shifted}.${fraction}+05:30"`,
    `"${iso.replace('T', ' ')}"`,
  ]);
}

function nested(random: Random, text: string, odd: boolean): string {
  if (!odd || random.chance(0.4)) return text;
  return random.pick([`[${text}]`, `[ ${text} , {"second":true}]`]);
}

function objectText(
  random: Random,
  members: readonly string[],
  odd: boolean,
  more: readonly string[] = [],
): string {
  if (!odd) return `{${members.join(',')}}`;
  const shuffled = [...members];
  for (let last = shuffled.length - 1; last > 0; last -= 1) {
    const other = random.below(last + 1);
    [shuffled[last], shuffled[other]] = [shuffled[other], shuffled[last]];
  }
  shuffled.push(...more);
  if (random.chance(0.3)) shuffled.push('"unread":{"url":"/rest","deep":[{"project":"z","timestamp":1}]}');
  return random.chance(0.3) ? `{ ${shuffled.join(' ,\n\t')} }` : `{${shuffled.join(',')}}`;
}

const PATHS = [
  '/rest/v1/todos',
  '/storage/v1/object',
  '/auth/v1/token',
  '/realtime/v1',
  '/functions/v1/x',
  '/',
];
const MIXED_PATHS = ['/auth/rest/storage', '/x/realtime-rest', '/restaurant', '/REST/v1', '/a/b', ''];

function edgeMetadata(
  random: Random,
  { projects, fillerBytes = 0 }: OddOptions,
  odd: boolean,
): string | null {
  const path = random.chance(0.8) ? random.pick(PATHS) : random.pick(MIXED_PATHS);
  const host = `https://${random.pick(projects)}.example.co`;
  const search = random.pick([
    '',
    '',
    '',
    `?id=${random.below(30)}`,
    `?to=${projects[0]}/auth`,
    '?é=😀&x=[1]',
  ]);
  const filler = fillerBytes === 0 ? '' : random.hex(random.below(fillerBytes));
  const url = `${host}${path}${search}${filler.slice(0, filler.length / 4)}`;
  if (!odd) {
    return `{"n":1.50,"filler":"${filler}","request":{"method":"GET","path":"${path}","url":"${url}"},"response":{"status_code":${drawStatus(random)}}}`;
  }
  if (random.chance(0.15))
    return random.pick([null, 'null', '[]', '"text"', '7', '[[]]', '{}', '[null]', '{"request":[]}']);
  const inner: string[] = ['"big":12345678901234567890', '"e":1E+2', '"\\u0061":"\\u0062"'].slice(
    random.below(4),
  );
  if (random.chance(0.6)) inner.push(`"path":"${path}"`);
  if (random.chance(0.8)) inner.push(`"url":${JSON.stringify(url)}`);
  if (random.chance(0.1)) inner.push('"method":null');
  const request = nested(random, objectText(random, inner, odd), odd);
  const response = nested(random, objectText(random, [`"status_code":${drawStatus(random)}`], odd), odd);
  const members = [`"request":${request}`, random.chance(0.3) ? '"response":{}' : `"response":${response}`];
  return nested(random, objectText(random, members, odd), odd);
}

function drawStatus(random: Random): string {
  return random.chance(0.6)
    ? '200'
    : random.pick(['101', '204', '302', '399', '400', '404', '500', '599', '600', '"503"', '"ok"']);
}

function drawExecutionTime(random: Random, shape: TimeShape, timesDrawn: number): number {
  switch (shape) {
    case 'rising':
      return timesDrawn + random.below(1_000) / 1_000;
    case 'falling':
      return 1e6 - timesDrawn;
    case 'two-humped':
      return Math.round((random.chance(0.93) ? 20 : 5_000) * Math.exp(random.normal() / 5));
    case 'heavy-tailed':
      return Math.round(1_000 * (1 - random.float()) ** -1.2) / 1_000;
    case 'few-values':
      return random.pick([1, 1, 1, 2, 3, 0.1, 0.2, 0.3]);
    case 'log-normal':
      return Number((50 * Math.exp(random.normal())).toFixed(random.chance(0.7) ? 0 : 3));
  }
}
