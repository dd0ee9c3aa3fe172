/**
 * A process that posts generated edge entries to a running service: the past in order as fast as it is taken,
 * or of the moment at a steady rate until told to stop. Started by bench/ninety-days-run.ts; takes a
 * PostOrder, then perhaps 'stop'; returns a PostReport.
 */

import { Agent, request } from 'node:http';
import { setPriority } from 'node:os';
import { US_PER_HOUR } from '../engine/time.js';
import { monotonicUs, wallClockUs } from '../src/system-clock.js';
import { createTraffic } from './generator/traffic.js';

export interface Past {
  readonly startUs: number;
  readonly endUs: number;
  /** Projects that get a row an hour, and three rows in all. */
  readonly sparseProject: string;
  readonly fewProject: string;
}

export interface PostOrder {
  readonly url: string;
  readonly key: string;
  readonly seed: number;
  readonly projectCount: number;
  /**
   * Entries in all, evenly over the time from `startUs` to `endUs`; or a second, of the moment, when that is
   * null.
   */
  readonly count: number;
  readonly past: Past | null;
}

export interface PostReport {
  readonly postedCount: number;
  /** POSTs that were turned away for a while, and sent again. */
  readonly refusedCount: number;
}

const POST_ENTRIES = 1_000;
/** One is decoded while the next is made and another is being written to disk. */
const POSTS_AT_ONCE = 4;
const TICK_MS = 20;
/** Behind the clients, with which it may share a core. */
const NICENESS = 10;
setPriority(NICENESS);

const agent = new Agent({ keepAlive: true, maxSockets: POSTS_AT_ONCE });
let stopped = false;

async function post(order: PostOrder): Promise<PostReport> {
  const traffic = createTraffic({ seed: order.seed, projectCount: order.projectCount });
  let refusedCount = 0;
  const send = async (lines: readonly string[]) => {
    refusedCount += await sendUntilTaken(order, lines.join('\n'));
  };
  const postedCount =
    order.past === null
      ? await postSteadily(order.count, traffic.edge, send)
      : await postPast(order.count, order.past, traffic.edge, send);
  return { postedCount, refusedCount };
}

type Send = (lines: readonly string[]) => Promise<void>;

async function postPast(
  count: number,
  { startUs, endUs, sparseProject, fewProject }: Past,
  edge: (timestampUs: number) => string,
  send: Send,
): Promise<number> {
  const hourCount = Math.ceil((endUs - startUs) / US_PER_HOUR);
  const fewEvery = Math.ceil(hourCount / 3);
  let hour = -1;
  let posted = 0;
  const underway = new Set<Promise<void>>();
  for (let first = 0; first < count; first += POST_ENTRIES) {
    const lines: string[] = [];
    for (let i = first; i < Math.min(count, first + POST_ENTRIES); i++) {
      const timestampUs = startUs + Math.floor(((endUs - startUs) * i) / count);
      lines.push(edge(timestampUs));
      for (; hour < Math.floor((timestampUs - startUs) / US_PER_HOUR); hour++) {
        lines.push(entryOf(sparseProject, timestampUs));
        if ((hour + 1) % fewEvery === 0) lines.push(entryOf(fewProject, timestampUs));
      }
    }
    posted += lines.length;
    const sending = send(lines).finally(() => underway.delete(sending));
    underway.add(sending);
    if (underway.size >= POSTS_AT_ONCE) await Promise.race(underway);
  }
  await Promise.all(underway);
  return posted;
}

function entryOf(project: string, timestampUs: number): string {
  return JSON.stringify({
    project,
    timestamp: timestampUs,
    event_message: `a row of ${project}`,
    metadata: {},
  });
}

async function postSteadily(
  ratePerSecond: number,
  edge: (timestampUs: number) => string,
  send: Send,
): Promise<number> {
  const startUs = monotonicUs();
  let posted = 0;
  while (!stopped) {
    await new Promise((resolve) => setTimeout(resolve, TICK_MS));
    const due = Math.floor((ratePerSecond * (monotonicUs() - startUs)) / 1e6) - posted;
    const count = Math.min(due, POST_ENTRIES);
    if (count === 0) continue;
    await send(Array.from({ length: count }, () => edge(wallClockUs())));
    posted += count;
  }
  return posted;
}

/** Returns how often it was turned away. */
async function sendUntilTaken({ url, key }: PostOrder, body: string): Promise<number> {
  for (let refusals = 0; ; refusals++) {
    const { status, retryAfterSeconds, text } = await sendOnce(url, key, body);
    if (status === 200) return refusals;
    if (status !== 503) throw new Error(`a POST answered ${status}: ${text}`);
    await new Promise((resolve) => setTimeout(resolve, retryAfterSeconds * 1000));
  }
}

interface PostAnswer {
  readonly status: number;
  readonly retryAfterSeconds: number;
  readonly text: string;
}

function sendOnce(url: string, key: string, body: string): Promise<PostAnswer> {
  return new Promise((resolve, reject) => {
    const asked = request(
      `${url}/api/logs?source_name=cloudflare.logs.prod`,
      { method: 'POST', agent, headers: { 'X-API-KEY': key, 'Content-Type': 'application/x-ndjson' } },
      (response) => {
        const pieces: Buffer[] = [];
        response.on('data', (piece: Buffer) => pieces.push(piece));
        response.once('error', reject);
        response.once('end', () =>
          resolve({
            status: response.statusCode!,
            retryAfterSeconds: Number(response.headers['retry-after'] ?? 1),
            text: Buffer.concat(pieces).toString(),
          }),
        );
      },
    );
    asked.once('error', reject);
    asked.end(body);
  });
}

// The process that started it is gone: nobody reads a report.
process.once('disconnect', () => process.exit(1));

process.on('message', (message: PostOrder | 'stop') => {
  if (message === 'stop') {
    stopped = true;
    return;
  }
  post(message).then(
    (report) => process.send?.(report, () => process.exit(0)),
    (error: unknown) => {
      process.stderr.write(`http feeder: ${String(error)}\n`);
      process.exit(1);
    },
  );
});
