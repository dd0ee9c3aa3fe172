/**
 * What lives in the heaps of a process's threads once garbage is collected, asked through Node's inspector.
 */

import { WebSocket } from 'undici';

interface Reply {
  readonly id?: number;
  readonly method?: string;
  readonly params?: { readonly sessionId: string; readonly message: string };
  readonly result?: { readonly result?: { readonly value?: unknown } };
  readonly error?: { readonly message: string };
}

type Call = (method: string, params?: object) => Promise<Reply>;

export class Inspector {
  readonly #socket: WebSocket;
  readonly #sessions = new Set<string>();
  readonly #waiting = new Map<number, { resolve: (reply: Reply) => void; reject: (error: Error) => void }>();
  #lastId = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener('message', ({ data }) => this.#take(JSON.parse(String(data))));
    socket.addEventListener('close', () => {
      for (const { reject } of this.#waiting.values()) reject(new Error('the inspected process has ended'));
      this.#waiting.clear();
    });
  }

  /** `output` is what a process started with --inspect has written. */
  static async connect(output: string): Promise<Inspector> {
    const address = /Debugger listening on (ws:\S+)/.exec(output);
    if (address === null) throw new Error(`no inspector in ${output}`);
    const socket = new WebSocket(address[1]);
    await new Promise<void>((resolve, reject) => {
      socket.addEventListener('open', () => resolve());
      socket.addEventListener('error', () => reject(new Error(`the inspector at ${address[1]} is away`)));
    });
    const inspector = new Inspector(socket);
    await inspector.#callMain('NodeWorker.enable', { waitForDebuggerOnStart: false });
    return inspector;
  }

  /** Bytes in use in the heaps of all threads. Rejects when the process ends. */
  async heapBytesAfterCollection(): Promise<number> {
    const calls: Call[] = [
      (method, params) => this.#callMain(method, params),
      ...[...this.#sessions].map(
        (sessionId): Call =>
          (method, params) =>
            this.#callWorker(sessionId, method, params),
      ),
    ];
    let bytes = 0;
    for (const call of calls) {
      await call('HeapProfiler.collectGarbage');
      const expression = 'process.memoryUsage().heapUsed';
      const { result } = await call('Runtime.evaluate', { expression, returnByValue: true });
      bytes += Number(result?.result?.value);
    }
    return bytes;
  }

  close(): void {
    this.#socket.close();
  }

  #callMain(method: string, params: object = {}): Promise<Reply> {
    return this.#expect((id) => this.#socket.send(JSON.stringify({ id, method, params })));
  }

  #callWorker(sessionId: string, method: string, params: object = {}): Promise<Reply> {
    return this.#expect((id) => {
      const message = JSON.stringify({ id, method, params });
      // Its own reply says only that it was handed on.
      this.#callMain('NodeWorker.sendMessageToWorker', { sessionId, message }).catch((error) => {
        this.#waiting.get(id)?.reject(error);
      });
    });
  }

  #expect(send: (id: number) => void): Promise<Reply> {
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      send(id);
    });
  }

  #take(reply: Reply): void {
    const { id, method, params } = reply;
    if (method === 'NodeWorker.attachedToWorker') this.#sessions.add(params!.sessionId);
    else if (method === 'NodeWorker.detachedFromWorker') this.#sessions.delete(params!.sessionId);
    else if (method === 'NodeWorker.receivedMessageFromWorker') this.#take(JSON.parse(params!.message));
    if (id === undefined) return;
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (reply.error === undefined) waiting?.resolve(reply);
    else waiting?.reject(new Error(reply.error.message));
  }
}
