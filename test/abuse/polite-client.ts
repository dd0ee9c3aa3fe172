/**
 * A process of a well-behaved client: asks the three endpoints and posts small bodies at a steady rate, and
 * writes down how long each took from when it was due. Started by abuse.ts; takes a PoliteOrder, then 'stop';
 * returns a PoliteReport.
 */

import { Agent, request } from 'node:http';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { questionsAbout } from '../../bench/questions.js';
import { monotonicUs, wallClockUs } from '../../src/system-clock.js';
import { TEST_KEY } from '../child-service.js';

export interface PoliteOrder {
  readonly url: string;
  readonly queriesPerSecond: number;
  readonly postsPerSecond: number;
}

/** A request of those that took longest. */
export interface SlowRequest {
  readonly ms: number;
  /** Since the client began. */
  readonly second: number;
  readonly path: string;
  readonly outcome: string;
}

export interface PoliteReport {
  readonly queriesUs: readonly number[];
  readonly postsUs: readonly number[];
  readonly slowest: readonly SlowRequest[];
  /** By method and outcome. */
  readonly statuses: readonly (readonly [status: string, count: number])[];
  /**
   * How long this process itself did not come to its next turn, in 99 of 100 turns: what of a latency is its
   * own.
   */
  readonly ownDelayMs: number;
}

type Answered = Pick<SlowRequest, 'path' | 'outcome'>;

const PROJECTS = ['polite-a', 'polite-b'];
const POST_ENTRIES = 10;
const CONNECTIONS = 8;
const SLOWEST = 8;

const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
const statuses = new Map<string, number>();
const slowest: SlowRequest[] = [];
let stopped = false;

async function ask(order: PoliteOrder): Promise<PoliteReport> {
  const delays = monitorEventLoopDelay({ resolution: 1 });
  delays.enable();
  const paths = Object.values(questionsAbout(PROJECTS)).flat();
  let asked = 0;
  const query = () => {
    const headers = asked % 2 === 0 ? { 'Cache-Control': 'no-cache' } : {};
    return send(`${order.url}${paths[asked++ % paths.length]}`, 'GET', headers, null);
  };
  const post = () => {
    const headers = { 'Content-Type': 'application/x-ndjson' };
    return send(`${order.url}/api/logs?source_name=cloudflare.logs.prod`, 'POST', headers, smallBody());
  };
  const [queriesUs, postsUs] = await Promise.all([
    steadily(order.queriesPerSecond, query),
    steadily(order.postsPerSecond, post),
  ]);
  agent.destroy();
  return { queriesUs, postsUs, slowest, statuses: [...statuses], ownDelayMs: delays.percentile(99) / 1e6 };
}

async function steadily(ratePerSecond: number, one: () => Promise<Answered>): Promise<number[]> {
  const latenciesUs: number[] = [];
  const startUs = monotonicUs();
  const underway: Promise<void>[] = [];
  for (let i = 0; !stopped; i++) {
    const dueUs = startUs + (i * 1e6) / ratePerSecond;
    const aheadMs = (dueUs - monotonicUs()) / 1000;
    if (aheadMs > 0) await new Promise((resolve) => setTimeout(resolve, aheadMs));
    // A timer may come late: that is not the service's time.
    const fromUs = aheadMs > 0 ? monotonicUs() : dueUs;
    underway.push(
      one().then((answered) => {
        const tookUs = monotonicUs() - fromUs;
        latenciesUs.push(tookUs);
        noteSlow({ ...answered, ms: tookUs / 1000, second: Math.round((fromUs - startUs) / 1e6) });
      }),
    );
  }
  await Promise.all(underway);
  return latenciesUs;
}

function noteSlow(request: SlowRequest): void {
  if (slowest.length === SLOWEST && slowest[SLOWEST - 1].ms >= request.ms) return;
  slowest.push(request);
  slowest.sort((a, b) => b.ms - a.ms).splice(SLOWEST);
}

function smallBody(): string {
  return Array.from({ length: POST_ENTRIES }, (_, i) => {
    const project = PROJECTS[i % PROJECTS.length];
    return `{"project":"${project}","timestamp":${wallClockUs()},"metadata":{"request":{"url":"https://${project}.example/rest/v1/${i}"}}}`;
  }).join('\n');
}

function send(
  url: string,
  method: string,
  headers: Record<string, string>,
  body: string | null,
): Promise<Answered> {
  return new Promise((resolve) => {
    const end = (outcome: string) => {
      const status = `${method} ${outcome}`;
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      resolve({ path: new URL(url).pathname, outcome });
    };
    const asked = request(
      url,
      { method, agent, headers: { 'X-API-KEY': TEST_KEY, ...headers } },
      (response) => {
        const { statusCode, headers } = response;
        const isFine = statusCode === 200 || (statusCode === 503 && headers['retry-after'] !== undefined);
        let text = '';
        response.on('data', (piece: Buffer) => {
          if (!isFine) text += piece.toString();
        });
        response.once('error', (error) => end(String(error)));
        response.once('end', () => end(`${statusCode}${isFine ? '' : ` ${text.slice(0, 500)}`}`));
      },
    );
    asked.once('error', (error: NodeJS.ErrnoException) => end(error.code ?? error.message));
    asked.end(body);
  });
}

// Ctrl-C is for its starter, which says when to stop.
process.on('SIGINT', () => undefined);

// Its starter is gone: nobody reads a report.
process.once('disconnect', () => process.exit(1));

process.on('message', (message: PoliteOrder | 'stop') => {
  if (message === 'stop') {
    stopped = true;
    return;
  }
  ask(message).then(
    (report) => process.send?.(report, () => process.exit(0)),
    (error: unknown) => {
      process.stderr.write(`polite client: ${String(error)}\n`);
      process.exit(1);
    },
  );
});
