/** One HTTP client of the service, with many connections that are kept. */

import { Agent, type IncomingMessage, request } from 'node:http';
import { gunzipSync } from 'node:zlib';
import { wallClockUs } from '../../src/system-clock.js';
import { TEST_KEY } from '../child-service.js';
import type { Answer } from './answer.js';

const CONNECTIONS = 32;
/** An answer that takes longer than this doesn't come. */
const TIMEOUT_MS = 60_000;

export interface AskOptions {
  readonly method?: 'GET' | 'HEAD';
  readonly headers?: Readonly<Record<string, string>>;
}

export class Client {
  readonly #url: string;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  /**
   * Requests whose connection was closed just as it was used again, as happens to a client that was busy for
   * seconds.
   */
  resentCount = 0;

  constructor(url: string) {
    this.#url = url;
  }

  /** Rejects where no answer comes. */
  ask(path: string, options: AskOptions = {}): Promise<Answer> {
    return this.#ask(path, options, this.#agent).catch((error: unknown) => {
      if (!(error instanceof ClosedError)) throw error;
      this.resentCount += 1;
      // Others that are kept may have been closed in the same moment.
      return this.#ask(path, options, false);
    });
  }

  #ask(path: string, { method = 'GET', headers = {} }: AskOptions, agent: Agent | false): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const askedUs = wallClockUs();
      const asked = request(
        `${this.#url}${path}`,
        { agent, method, headers: { 'X-API-KEY': TEST_KEY, ...headers }, timeout: TIMEOUT_MS },
        (response) => {
          bodyOf(response).then((body) => {
            const { statusCode: status = 0, headers } = response;
            resolve({ status, headers, body, askedUs, answeredUs: wallClockUs() });
          }, reject);
        },
      );
      asked.once('timeout', () => asked.destroy(new Error(`no answer within ${TIMEOUT_MS} ms`)));
      asked.once('error', (error: NodeJS.ErrnoException) =>
        reject(asked.reusedSocket && error.code === 'ECONNRESET' ? new ClosedError(error.message) : error),
      );
      asked.end();
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

class ClosedError extends Error {
  override name = 'ClosedError';
}

async function bodyOf(response: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of response) pieces.push(piece as Buffer);
  const body = Buffer.concat(pieces);
  return response.headers['content-encoding'] === 'gzip' && body.length > 0 ? gunzipSync(body) : body;
}
