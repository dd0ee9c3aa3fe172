/**
 * The importer's side of `/api/logs`: asks how far an import has come and sends its chunks, again until it is
 * answered.
 */

import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import type { ImportState } from '../../ingest/embedded-log/import-state.js';
import { parsedJson } from '../parsed-json.js';
import type { FileChunk } from './file-chunks.js';
import { ImportError, ImportInterrupted } from './import-error.js';
import { FIRST_WAIT_MS, LONGEST_RETRY_AFTER_SECONDS, LONGEST_WAIT_MS, REQUEST_MS } from './limits.js';

export interface ImportClientOptions {
  /** Of the service, such as `http://127.0.0.1:4000`. */
  readonly url: string;
  readonly key: string;
  readonly topic: string;
  /** How long a service that can't be reached is tried again. */
  readonly patienceMs: number;
  readonly monotonicUs: () => number;
  /** Aborted when the operator ends the import. */
  readonly signal: AbortSignal;
  /** Told, as a sentence, what is waited for; null when it is over. */
  readonly onWait: (why: string | null) => void;
}

const stateAnswer = z.object({
  import: z.object({
    next: z.number(),
    digest: z.string(),
    accepted: z.number(),
    rejected: z.record(z.string(), z.number()),
  }),
});
const errorAnswer = z.object({ error: z.object({ message: z.string() }) });

const NEWLINE = Buffer.from('\n');
/** Answers of a service that is overloaded or starts, or of a proxy before one that is away. */
const BUSY_STATUSES = [429, 503];
const AWAY_STATUSES = [500, 502, 504];

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly retryAfter: string | null;
}

export class ImportClient {
  readonly topic: string;
  readonly #options: ImportClientOptions;

  constructor(options: ImportClientOptions) {
    this.topic = options.topic;
    this.#options = options;
  }

  async state(importId: string): Promise<ImportState> {
    return stateOf(await this.#request('GET', { import_id: importId }, null));
  }

  /** How far the import has come with the chunk. A chunk that is there already is not taken twice. */
  async send(importId: string, chunk: FileChunk): Promise<ImportState> {
    const parameters = {
      import_id: importId,
      import_start: String(chunk.startByte),
      import_bytes: String(chunk.endByte - chunk.startByte),
      import_start_digest: chunk.startDigest,
      import_end_digest: chunk.endDigest,
    };
    return stateOf(await this.#request('POST', parameters, chunk.bytes));
  }

  /** The text of a 200. Throws an ImportError for every answer that asking again would not change. */
  async #request(method: string, parameters: Record<string, string>, body: Buffer | null): Promise<string> {
    const { patienceMs, monotonicUs, signal, onWait } = this.#options;
    const query = new URLSearchParams({ source_name: this.topic, ...parameters });
    let awaySinceUs: number | null = null;
    let waitMs = FIRST_WAIT_MS;
    for (;;) {
      const answer = await this.#try(method, query, body);
      if (signal.aborted) throw new ImportInterrupted('it was interrupted');
      if (typeof answer !== 'string' && !AWAY_STATUSES.includes(answer.status)) {
        awaySinceUs = null;
        if (!BUSY_STATUSES.includes(answer.status)) {
          onWait(null);
          return bodyOf(answer, this.topic);
        }
        waitMs = FIRST_WAIT_MS;
        onWait(`the service is busy (${messageOf(answer)})`);
        await this.#wait(retryAfterMs(answer));
        continue;
      }
      const problem =
        typeof answer === 'string' ? answer : `it answers ${answer.status}: ${messageOf(answer)}`;
      awaySinceUs ??= monotonicUs();
      if (monotonicUs() - awaySinceUs >= patienceMs * 1000) {
        throw new ImportError(
          `the service at ${this.#options.url} could not be reached for ${patienceMs / 1000} s (${problem})`,
        );
      }
      onWait(`the service can't be reached (${problem})`);
      await this.#wait(waitMs);
      waitMs = Math.min(2 * waitMs, LONGEST_WAIT_MS);
    }
  }

  /** The problem, as text, where there is no answer. */
  async #try(method: string, query: URLSearchParams, body: Buffer | null): Promise<Answer | string> {
    const { url, key, signal } = this.#options;
    // AbortSignal.any would leave something behind with the operator's signal for every request, on some
    // Nodes.
    const request = new AbortController();
    const abort = () => request.abort();
    signal.addEventListener('abort', abort);
    const timer = setTimeout(
      () => request.abort(new Error(`no answer within ${REQUEST_MS / 1000} s`)),
      REQUEST_MS,
    );
    try {
      const response = await fetch(`${url.replace(/\/+$/, '')}/api/logs?${query}`, {
        method,
        headers: { 'X-API-KEY': key, 'Content-Type': 'application/x-ndjson' },
        // A body of nothing but whitespace says the same, and is a body to every proxy.
        ...(body === null ? {} : { body: body.length === 0 ? NEWLINE : body }),
        signal: request.signal,
        redirect: 'manual',
      });
      const text = await response.text();
      return { status: response.status, text, retryAfter: response.headers.get('retry-after') };
    } catch (error) {
      return fetchProblem(error);
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
    }
  }

  async #wait(waitMs: number): Promise<void> {
    const { signal } = this.#options;
    try {
      await delay(waitMs, undefined, { signal });
    } catch {
      throw new ImportInterrupted('it was interrupted');
    }
  }
}

function bodyOf(answer: Answer, topic: string): string {
  const said = messageOf(answer);
  switch (answer.status) {
    case 200:
      return answer.text;
    case 401:
      throw new ImportError(
        'the service refuses the key: give one that may post logs with --key, LOGRING_INGEST_KEYS or LOGRING_API_KEYS',
      );
    case 404:
      throw new ImportError(
        `the service takes no posted logs (${said}). Where it reads from Kafka, publish the entries to the topic ${topic} instead: it takes past ones too`,
      );
    case 409:
      throw new ImportError(
        `${said}. Another import of this file is under way, or the store is another one than before: run the same command again to go on from where it stands now`,
      );
    default:
      throw new ImportError(`Logring answers ${answer.status}: ${said}`);
  }
}

function stateOf(text: string): ImportState {
  const parsed = stateAnswer.safeParse(parsedJson(text));
  if (!parsed.success)
    throw new ImportError('the service answers as no Logring does that knows imports: is --url right?');
  const { next, digest, accepted, rejected } = parsed.data.import;
  return { nextByte: next, digest, accepted, rejectedByReason: rejected };
}

function messageOf({ text, status }: Answer): string {
  const parsed = errorAnswer.safeParse(parsedJson(text));
  return parsed.success ? parsed.data.error.message : `status ${status}`;
}

function retryAfterMs({ retryAfter }: Answer): number {
  const seconds = Number(retryAfter ?? 1);
  return 1000 * (seconds > 0 ? Math.min(seconds, LONGEST_RETRY_AFTER_SECONDS) : 1);
}

/** fetch says only that it failed; why is in the cause. */
function fetchProblem(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  if (!(cause instanceof Error)) return String(cause);
  return 'code' in cause ? String(cause.code) : cause.message;
}
