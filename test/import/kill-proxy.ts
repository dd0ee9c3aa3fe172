/**
 * An HTTP proxy between importer and service that lets something happen at a named moment of a chosen chunk.
 */

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * Of a POST: its body is halfway through; it has come and the service has not got it; the service is about to
 * get it and does so meanwhile; it is stored and not answered.
 */
export type Moment = 'amidst' | 'before' | 'during' | 'after';

export class KillProxy {
  /** Where the service is; may change when it is started again. */
  target: string;
  /** Called once, at the moment of the so-manieth chunk from now on; its exchange is cut off afterwards. */
  #plan: { readonly moment: Moment; chunksLeft: number; readonly act: () => Promise<unknown> } | null = null;
  readonly #server = createServer((request, response) => void this.#forward(request, response));

  constructor(target: string) {
    this.target = target;
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  /** Resolves when it has happened. */
  at(moment: Moment, chunksLeft: number, act: () => Promise<unknown>): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#plan = { moment, chunksLeft, act: () => act().then(() => resolve(), reject) };
    });
  }

  async #forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const act = request.method === 'POST' ? this.#due() : null;
      const pieces: Buffer[] = [];
      for await (const piece of request as AsyncIterable<Buffer>) {
        pieces.push(piece);
        if (act?.moment === 'amidst') return await cut(response, act);
      }
      if (act?.moment === 'before') return await cut(response, act);
      const acted = act?.moment === 'during' ? act.act() : null;
      const answer = await fetch(`${this.target}${request.url}`, {
        method: request.method ?? 'GET',
        headers: {
          'X-API-KEY': String(request.headers['x-api-key']),
          'Content-Type': 'application/x-ndjson',
        },
        ...(request.method === 'POST' ? { body: Buffer.concat(pieces) } : {}),
      });
      const text = await answer.text();
      await acted;
      if (act?.moment === 'after') return await cut(response, act);
      response.writeHead(answer.status, { 'Content-Type': 'application/json' }).end(text);
    } catch {
      // The service or the importer is gone; the other one is to see just that.
      response.destroy();
    }
  }

  #due() {
    if (this.#plan === null) return null;
    if (this.#plan.chunksLeft-- > 0) return null;
    const plan = this.#plan;
    this.#plan = null;
    return plan;
  }
}

async function cut(response: ServerResponse, plan: { act(): Promise<unknown> }): Promise<void> {
  await plan.act();
  response.destroy();
}
