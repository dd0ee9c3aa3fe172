/** Bodies of POSTs that cost much: large, packed small, nested deep, full of names. */

import { gzipSync } from 'node:zlib';
import { createTraffic } from '../../bench/generator/traffic.js';
import type { Random } from '../../src/demo/random.js';

const MEBIBYTE = 2 ** 20;
/** What the service takes at most, packed and unpacked. */
const PACKED_BYTES = 16 * MEBIBYTE;
const UNPACKED_BYTES = 64 * MEBIBYTE;
const ENTRY_KINDS = 200;
const LONG_NAME_BYTES = 100_000;
const NAME_BYTES = 1_024;
const NAMES_A_BODY = 1_000;
const FUNCTIONS_A_BODY = 5_000;
const BIG_ROWS = 100;
const BIG_ROW_BYTES = 500_000;
const BIG_ROWS_A_BODY = 25;

/** The project whose newest hundred rows are 50 MB. */
export const BIG_PROJECT = 'big';

export interface Body {
  readonly source: 'cloudflare.logs.prod' | 'deno-relay-logs';
  readonly bytes: Buffer;
  readonly isPacked: boolean;
}

/** Made once: what is sent again and again. */
export class Bodies {
  readonly large: Body;
  readonly largePacked: Body;
  readonly tooLarge: Body;
  readonly nested: readonly Body[];
  readonly longNames: Body;
  readonly unusable: Body;

  constructor(seed: number, nowUs: number) {
    const traffic = createTraffic({ seed, projectCount: 50, tierOf: () => 'FREE' });
    const lines = `${Array.from({ length: ENTRY_KINDS }, () => traffic.edge(nowUs)).join('\n')}\n`;
    const linesOf = (bytes: number) =>
      Buffer.from(lines.repeat(Math.floor(bytes / Buffer.byteLength(lines))));
    this.large = edge(linesOf(PACKED_BYTES));
    this.largePacked = packed(linesOf(UNPACKED_BYTES));
    this.tooLarge = edge(Buffer.alloc(PACKED_BYTES + 1, ' '));
    this.nested = [
      edge(Buffer.alloc(PACKED_BYTES, '[')),
      packed(Buffer.alloc(UNPACKED_BYTES - 1, '[')),
      packed(Buffer.from('{"a":'.repeat(UNPACKED_BYTES / 8))),
      packed(nestedMetadata(nowUs)),
    ];
    const name = (i: number) =>
      String(i)
        .padStart(8, '0')
        .repeat(LONG_NAME_BYTES / 8);
    this.longNames = packed(
      Buffer.from(Array.from({ length: 100 }, (_, i) => edgeLine(name(i), nowUs)).join('\n')),
    );
    this.unusable = packed(Buffer.from(`[${'1,'.repeat(100_000)}1]`));
  }
}

/** Distinct projects with names as long as names may be. */
export function manyNames(random: Random, nowUs: number): Body {
  const line = () => edgeLine(random.hex(NAME_BYTES), nowUs);
  return edge(Buffer.from(Array.from({ length: NAMES_A_BODY }, line).join('\n')));
}

/** Distinct functions of one project. */
export function manyFunctions(random: Random, nowUs: number): Body {
  const line = () =>
    `{"timestamp":${nowUs},"metadata":{"project_ref":"crowded","function_id":"${random.uuid()}","execution_time_ms":5,"response":{"status_code":200}}}`;
  const bytes = Buffer.from(Array.from({ length: FUNCTIONS_A_BODY }, line).join('\n'));
  return { source: 'deno-relay-logs', bytes, isPacked: false };
}

/** What makes the answers about BIG_PROJECT big. */
export function bigRows(nowUs: number): Body[] {
  const filler = 'x'.repeat(BIG_ROW_BYTES);
  return Array.from({ length: BIG_ROWS / BIG_ROWS_A_BODY }, (_, body) =>
    edge(
      Buffer.from(
        Array.from({ length: BIG_ROWS_A_BODY }, (_, i) =>
          edgeLine(BIG_PROJECT, nowUs - body * BIG_ROWS_A_BODY - i, filler),
        ).join('\n'),
      ),
    ),
  );
}

function edgeLine(project: string, timestampUs: number, filler = ''): string {
  return `{"project":"${project}","timestamp":${timestampUs},"event_message":"abuse","metadata":{"filler":"${filler}"}}`;
}

function edge(bytes: Buffer): Body {
  return { source: 'cloudflare.logs.prod', bytes, isPacked: false };
}

function packed(bytes: Buffer): Body {
  return { ...edge(gzipSync(bytes)), isPacked: true };
}

/** Entries whose metadata nests as deep as an entry is long. */
function nestedMetadata(nowUs: number): Buffer {
  const depth = 100_000;
  const line = `{"project":"deep","timestamp":${nowUs},"metadata":${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}}\n`;
  return Buffer.from(line.repeat(Math.floor(UNPACKED_BYTES / line.length)));
}
