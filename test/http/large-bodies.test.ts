/** Large bodies that come at once, over both servers. */

import { request } from 'node:http';
import { afterEach, describe, expect, test } from 'vitest';
import { READ_TURN_BYTES } from '../../src/http/limits.js';
import type { BodyConsumer, HttpAnswer } from '../../src/http/server/server.js';
import { eventually } from '../eventually.js';
import { BACK_ENDS, RunningServer } from './running-server.js';
import { BugLog } from './service.js';

const BODY_BYTES = 8 * 1024 * 1024;
/** What one read of node:http brings at most. */
const READ_BYTES = 64 * 1024;
const DONE: HttpAnswer = { status: 200, headers: [], body: 'read', close: false };

const running: RunningServer[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map(({ server }) => server.close(0)));
});

/** Notes what of a body comes in each turn of the event loop. */
class CountedBody implements BodyConsumer {
  byteCount = 0;
  mostInTurn = 0;
  isAborted = false;
  #inTurn = 0;

  push(piece: Uint8Array): boolean {
    this.byteCount += piece.length;
    if (this.#inTurn === 0)
      setImmediate(() => {
        this.#inTurn = 0;
      });
    this.#inTurn += piece.length;
    this.mostInTurn = Math.max(this.mostInTurn, this.#inTurn);
    return true;
  }

  end(): HttpAnswer {
    return DONE;
  }

  abort(): void {
    this.isAborted = true;
  }
}

describe.each(BACK_ENDS)('%s', (backEnd) => {
  async function counting(): Promise<{ server: RunningServer; bodies: CountedBody[] }> {
    const bodies: CountedBody[] = [];
    const open = () => {
      bodies.push(new CountedBody());
      return bodies[bodies.length - 1];
    };
    const server = await RunningServer.start(backEnd, { open }, new BugLog());
    running.push(server);
    return { server, bodies };
  }

  test('large bodies come whole, and of one no more in a turn of node:http than may', async () => {
    const { server, bodies } = await counting();
    const replies = Array.from({ length: 3 }, async () => {
      const reply = await fetch(server.url, { method: 'POST', body: new Uint8Array(BODY_BYTES) });
      return await reply.text();
    });
    expect(await Promise.all(replies)).toEqual(['read', 'read', 'read']);
    expect(bodies.map(({ byteCount }) => byteCount)).toEqual([BODY_BYTES, BODY_BYTES, BODY_BYTES]);
    if (backEnd === 'node:http')
      for (const { mostInTurn } of bodies) expect(mostInTurn).toBeLessThan(READ_TURN_BYTES + READ_BYTES);
  });

  test('a client that goes away amid a large body is noticed', async () => {
    const { server, bodies } = await counting();
    const sent = request(server.url, { method: 'POST', headers: { 'Content-Length': BODY_BYTES } });
    sent.on('error', () => undefined);
    sent.write(new Uint8Array(BODY_BYTES / 2), () => sent.destroy());
    await eventually(() => bodies.length === 1 && bodies[0].isAborted);
  });
});
