/** One request to uWebSockets.js and what becomes of it. */

import { STATUS_CODES } from 'node:http';
import { entryOf } from '../../../engine/entry-of.js';
import type { Sending } from './answers-in-flight.js';
import type { BodyConsumer, HeaderLine } from './server.js';
import type { UwsApp, UwsResponse } from './uws-binary.js';

/** An app of uWebSockets.js. Retired: new connections go to another one. */
export interface Listener {
  readonly app: UwsApp;
  isRetired: boolean;
}

/** One request and its answer. */
export class Exchange {
  readonly listener: Listener;
  readonly response: UwsResponse;
  isHead = false;
  /** Whether we are told when the client goes away. */
  isWatched = false;
  /** Ended or aborted: the response may not be touched any more. */
  isOver = false;
  mustClose = false;
  /** Releases the body that is being sent. */
  release: (() => void) | undefined;
  /** Set while the socket has not taken all of the body. */
  sending: Sending | null = null;
  /** Whether a turn of the event loop is on its way that goes on with the body. */
  hasTurn = false;
  /** Set while the body is being read. */
  body: BodyConsumer | null = null;

  constructor(listener: Listener, response: UwsResponse) {
    this.listener = listener;
    this.response = response;
  }
}

/**
 * The status, and the header lines in one call: a call takes as long as what it writes. 200 is written by
 * itself.
 */
export function writeHead(response: UwsResponse, status: number, lines: readonly HeaderLine[]): void {
  if (status !== 200) response.writeStatus(statusLine(status));
  if (lines.length === 0) return;
  let text = lines[0][1];
  for (let i = 1; i < lines.length; i++) text += `\r\n${lines[i][0]}: ${lines[i][1]}`;
  response.writeHeader(lines[0][0], text);
}

const statusLines = new Map<number, string>();

function statusLine(status: number): string {
  return entryOf(statusLines, status, () => `${status} ${STATUS_CODES[status] ?? ''}`);
}
