/**
 * Names of projects and functions that the members know of together, for the console to offer. What a member does not
 * tell in time is left out.
 */

import * as z from 'zod';
import { entryOf } from '../../engine/entry-of.js';
import { Unavailable } from '../endpoints/refusal.js';
import type { NamedCount, Names } from '../http/console/console-api.js';
import { messageReader, writeMessage } from './json-message.js';
import { NAMES_AT_ONCE } from './limits.js';
import type { Peer } from './peer.js';

const namesRequest = z.object({
  /** null: names of projects, not of its functions. */
  project: z.string().nullable(),
  nowUs: z.int(),
});
/** Those with most entries first; of projects the count is 0. */
const namesReply = z.array(z.object({ name: z.string(), count: z.int().min(0) })).max(NAMES_AT_ONCE);

const readRequest = messageReader(namesRequest, 'a request for names');
const readReply = messageReader(namesReply, 'names');

export interface MemberNamesPorts {
  /** Of this process. */
  readonly own: Names;
  readonly zone: string;
  readonly peers: () => Iterable<Peer>;
  readonly timeoutMs: number;
}

export class MemberNames implements Names {
  readonly #ports: MemberNamesPorts;

  constructor(ports: MemberNamesPorts) {
    this.#ports = ports;
  }

  /** In the order of each member, in turn. */
  async projects(nowUs: number, limit: number): Promise<readonly string[]> {
    const [own, others] = await Promise.all([
      this.#ports.own.projects(nowUs, NAMES_AT_ONCE),
      this.#others({ project: null, nowUs }),
    ]);
    const lists = [own, ...others.map(({ names }) => names.map(({ name }) => name))];
    const longest = Math.max(...lists.map(({ length }) => length));
    const names = new Set<string>();
    for (let rank = 0; rank < longest; rank++)
      for (const list of lists) if (rank < list.length) names.add(list[rank]);
    return [...names].slice(0, limit);
  }

  /** Counts of a zone are added up; of several zones, which have the same entries, the largest counts. */
  async functions(project: string, nowUs: number, limit: number): Promise<readonly NamedCount[]> {
    const { own, zone } = this.#ports;
    const [mine, others] = await Promise.all([
      own.functions(project, nowUs, NAMES_AT_ONCE),
      this.#others({ project, nowUs }),
    ]);
    const zones = new Map<string, Map<string, number>>();
    const add = (of: string, name: string, count: number): void => {
      const counts = entryOf(zones, of, () => new Map<string, number>());
      counts.set(name, (counts.get(name) ?? 0) + count);
    };
    for (const { id, count } of mine) add(zone, id, count);
    for (const { peer, names } of others) for (const { name, count } of names) add(peer.zone, name, count);
    const most = new Map<string, number>();
    for (const counts of zones.values())
      for (const [name, count] of counts) most.set(name, Math.max(most.get(name) ?? 0, count));
    return [...most]
      .sort(([, a], [, b]) => b - a)
      .slice(0, limit)
      .map(([id, count]) => ({ id, count }));
  }

  /** What another member asks. Rejects with a PartialError for bytes that are no request. */
  async answer(bytes: Uint8Array): Promise<Uint8Array> {
    const { project, nowUs } = readRequest(bytes);
    const { own } = this.#ports;
    try {
      if (project === null) {
        const names = await own.projects(nowUs, NAMES_AT_ONCE);
        return writeMessage(names.map((name) => ({ name, count: 0 })));
      }
      const functions = await own.functions(project, nowUs, NAMES_AT_ONCE);
      return writeMessage(functions.map(({ id, count }) => ({ name: id, count })));
    } catch (error) {
      // It is busy with other lists.
      if (error instanceof Unavailable) return writeMessage([]);
      throw error;
    }
  }

  async #others(request: z.infer<typeof namesRequest>) {
    const { peers, timeoutMs } = this.#ports;
    const message = writeMessage(request);
    const told = await Promise.all(
      [...peers()]
        .filter((peer) => !peer.isSilent)
        .map(async (peer) => {
          try {
            return { peer, names: readReply(await peer.link.names(message, timeoutMs)) };
          } catch {
            return null;
          }
        }),
    );
    return told.filter((one) => one !== null);
  }
}
