/**
 * Logring, twice on the same stored entries: as the service that users run, asked over HTTP; and, once that
 * has stopped, its API within the asking process, for those peers that run there. No answer comes from the
 * result cache.
 */

import { fileURLToPath } from 'node:url';
import { pino } from 'pino';
import { Client, type Dispatcher } from 'undici';
import { readConfig } from '../../src/config.js';
import type { Api } from '../../src/http/api.js';
import { FRESH } from '../../src/http/ports.js';
import { HeaderList } from '../../src/http/server/headers.js';
import type { HttpAnswer } from '../../src/http/server/server.js';
import { CACHE_SHARE } from '../../src/limits.js';
import { ApiCountsEvaluator } from '../../src/match-thread/api-counts-evaluator.js';
import { createKeyRings } from '../../src/service/key-rings.js';
import { KnownNames } from '../../src/service/known-names.js';
import { budgetBytesOf } from '../../src/service/memory-budget.js';
import { createAnswersInFlight, createApi, createQueries } from '../../src/service/service-api.js';
import { Shards } from '../../src/service/shards.js';
import { Store } from '../../src/store/store.js';
import { monotonicUs } from '../../src/system-clock.js';
import { type ChildService, startChildService, TEST_KEY } from '../../test/child-service.js';
import { allowAllCores } from '../cores.js';
import { directoryBytes } from '../directory-bytes.js';
import type { EntryBatch } from './entries.js';
import { rowsOfBody, targetOf } from './logring-answers.js';
import type { Peer, Reach, System } from './peer.js';
import type { Question } from './question.js';

const SERVICE = fileURLToPath(new URL('./fixed-clock-service.js', import.meta.url));
const RETRY_MS = 500;
const REFUSAL_LIMIT = 100;
const POLL_MS = 100;
const VERSION = 'this one';

export interface LogringOptions {
  readonly directory: string;
  readonly nowUs: number;
  /** So many looks at the disk without a change: nothing is left to be compacted. */
  readonly quietPolls: number;
}

function settingsOf({ directory }: LogringOptions): Record<string, string> {
  return {
    LOGRING_DATA_DIR: directory,
    LOGRING_API_KEYS: TEST_KEY,
    LOGRING_CACHE_SECONDS: '0',
    LOGRING_MAX_LAG_RECORDS: '0',
    LOGRING_LOG_LEVEL: 'info',
  };
}

export async function startLogring(options: LogringOptions): Promise<System> {
  const service = await startChildService(settingsOf(options), [SERVICE, String(options.nowUs)]);
  allowAllCores(service.processId);
  const client = new Client(service.url);
  const shipper = new Client(service.url);
  const untilQuietForLong = () => untilQuiet(service, options);
  return {
    peers: [overHttp(client)],
    insert: (batch) => post(shipper, batch),
    finish: untilQuietForLong,
    caughtUp: untilQuietForLong,
    async close() {
      await client.close();
      await shipper.close();
      await service.kill('SIGTERM');
    },
  };
}

function overHttp(client: Client): Peer {
  return {
    name: 'Logring',
    version: VERSION,
    reach: 'over a socket' satisfies Reach,
    includes: 'HTTP (undici), the whole JSON body',
    prepare(question) {
      const { path, rawQuery } = targetOf(question);
      const request = {
        method: 'GET',
        path: `${path}?${rawQuery}`,
        headers: { 'x-api-key': TEST_KEY },
      } as const;
      return {
        run: () => bodyOf(client, request),
        rows: (body: Uint8Array) => rowsOfBody(question, body),
      };
    },
  };
}

/** undici's quickest way: no stream is made of the answer. */
function bodyOf(client: Client, request: Dispatcher.DispatchOptions): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    let status = 0;
    client.dispatch(request, {
      onConnect: () => undefined,
      onError: reject,
      onHeaders(statusCode) {
        status = statusCode;
        return true;
      },
      onData(piece) {
        pieces.push(piece);
        return true;
      },
      onComplete() {
        const body = pieces.length === 1 ? pieces[0] : Buffer.concat(pieces);
        if (status === 200) resolve(body);
        else reject(new Error(`${request.path} answered ${status}: ${body}`));
      },
    });
  });
}

async function post(client: Client, { edgeTexts, relayTexts }: EntryBatch): Promise<void> {
  await Promise.all([
    postUntilTaken(client, 'cloudflare.logs.prod', edgeTexts),
    postUntilTaken(client, 'deno-relay-logs', relayTexts),
  ]);
}

/**
 * While ingest is paused a body is turned away unread: the answer says so, or the connection breaks. None of
 * it is kept.
 */
async function postUntilTaken(client: Client, source: string, texts: readonly string[]): Promise<void> {
  const request = {
    method: 'POST',
    path: `/api/logs?source_name=${source}`,
    headers: { 'x-api-key': TEST_KEY, 'content-type': 'application/x-ndjson' },
    body: texts.join('\n'),
  } as const;
  for (let refusals = 0; ; refusals++) {
    try {
      const { statusCode, body } = await client.request(request);
      const answer = await body.text();
      if (statusCode === 200) return;
      throw new Error(`a POST answered ${statusCode}: ${answer}`);
    } catch (error) {
      if (refusals === REFUSAL_LIMIT) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

/** Until everything posted is applied, and stored rows have found their last form. */
async function untilQuiet(service: ChildService, { directory, quietPolls }: LogringOptions): Promise<void> {
  let quiet = 0;
  let before = -1;
  while (quiet < quietPolls) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    const { status } = await fetch(`${service.url}/readyz`);
    const bytes = directoryBytes(directory);
    quiet = status === 200 && bytes === before ? quiet + 1 : 0;
    before = bytes;
  }
}

export interface LogringInProcess {
  readonly peer: Peer;
  close(): Promise<void>;
}

/** Opens what the service has stored, when it has stopped. */
export async function openLogring(options: LogringOptions): Promise<LogringInProcess> {
  const config = readConfig(settingsOf(options));
  const store = await Store.open(options.directory, CACHE_SHARE * budgetBytesOf(config));
  const shards = new Shards(store, { edgeTopic: config.EDGE_TOPIC, relayTopic: config.RELAY_TOPIC });
  const evaluator = new ApiCountsEvaluator(() => shards.edge.map(({ usage }) => usage), {
    files: {
      locate: (view, file) => store.located(shards.scopeOf(view), file),
      damaged: (view, file, problem) => store.noteDamage(shards.scopeOf(view), file, problem),
    },
  });
  const fail = (error: unknown) => {
    throw error;
  };
  const states = { stateOf: () => FRESH, epochOf: () => 0 };
  const platform = {
    logger: pino({ level: 'silent' }),
    clock: { nowUs: () => options.nowUs, monotonicUs },
    version: VERSION,
    onFatal: fail,
    announceKey: () => undefined,
  };
  const snapshots = {
    snapshot: () => Promise.reject(new Error('no store')),
    releaseSnapshot: async () => undefined,
  };
  const api = createApi({
    config,
    platform,
    snapshots,
    keys: createKeyRings(config, platform),
    queries: createQueries({
      config,
      platform,
      shards,
      evaluator,
      states,
      cluster: null,
      inFlight: createAnswersInFlight(config),
      dropped: [],
      bugs: { report: fail },
    }),
    ingest: null,
    alarms: {
      gaps: { open: () => [], acknowledge: () => Promise.resolve([]) },
      holds: { open: () => [], acknowledge: () => Promise.resolve([]) },
    },
    topicReadings: () => [],
    deadLetters: null,
    states,
    readiness: () => ({ reasons: [], notes: [] }),
    metrics: () => Promise.resolve(''),
    names: new KnownNames(shards),
    status: null,
  });
  // Its threads keep no process alive, and nothing else may be open here.
  const alive = setInterval(() => undefined, 1_000_000);
  return {
    peer: inProcess(api),
    async close() {
      clearInterval(alive);
      await evaluator.stop();
      await store.close();
    },
  };
}

function inProcess(api: Api): Peer {
  const headers = new HeaderList();
  headers.add('x-api-key', TEST_KEY);
  return {
    name: 'Logring',
    version: VERSION,
    reach: 'in process',
    includes: 'its HTTP layer without sockets, the whole JSON body',
    prepare(question: Question) {
      const request = { method: 'GET', ...targetOf(question), headers };
      return {
        run: () => {
          const opened = api.open(request);
          return opened instanceof Promise ? opened.then(taken) : taken(opened as HttpAnswer);
        },
        rows: (body: Uint8Array) => rowsOfBody(question, body),
      };
    },
  };
}

/** The body is another answer's once it is released: rows are read from it before that. */
function taken({ status, body, release }: HttpAnswer): Uint8Array {
  if (status !== 200) throw new Error(`answered ${status}: ${body}`);
  release?.();
  return body as Uint8Array;
}
