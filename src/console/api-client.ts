/** Asks Logring, with the key of this tab. What can go wrong is a value, so that each part can say it. */

export type Answer<Value> =
  | {
      readonly kind: 'answered';
      readonly value: Value;
      /**
       * When it was computed, ms since the epoch by the server's clock; null where the server doesn't say.
       */
      readonly computedMs: number | null;
    }
  | { readonly kind: 'refused'; readonly status: number; readonly message: string }
  /** The server isn't there, or what came is no answer of Logring. */
  | { readonly kind: 'unreachable' }
  /** The part that asked has asked for something else meanwhile, or the key is no longer valid. */
  | { readonly kind: 'dropped' };

/** What `/readyz` returns. */
export interface Health {
  readonly reasons: readonly string[];
  readonly notes?: readonly string[];
}

const PATIENCE_MS = 30_000;

export class ApiClient {
  readonly #key: string;
  readonly #keyRefused: () => void;
  readonly #tellAge: (path: string, staleSeconds: number) => void;

  /**
   * `keyRefused` is called when the server does not know the key, `tellAge` with how old each answer says that
   * it is; 0: it is fresh.
   */
  constructor(
    key: string,
    keyRefused: () => void,
    tellAge: (path: string, staleSeconds: number) => void = () => undefined,
  ) {
    this.#key = key;
    this.#keyRefused = keyRefused;
    this.#tellAge = tellAge;
  }

  /** `path` is relative to the page. The answer is computed, past the server's result cache. */
  async get<Value>(
    path: string,
    parameters: Readonly<Record<string, string>>,
    signal: AbortSignal,
  ): Promise<Answer<Value>> {
    const query = new URLSearchParams(parameters).toString();
    try {
      const response = await fetch(query === '' ? path : `${path}?${query}`, {
        headers: { 'X-API-KEY': this.#key, 'Cache-Control': 'no-cache' },
        cache: 'no-store',
        credentials: 'omit',
        redirect: 'error',
        signal: AbortSignal.any([signal, AbortSignal.timeout(PATIENCE_MS)]),
      });
      const body = parsed(await response.text());
      if (signal.aborted) return { kind: 'dropped' };
      if (response.status === 401) {
        this.#keyRefused();
        return { kind: 'dropped' };
      }
      if (!response.ok)
        return { kind: 'refused', status: response.status, message: messageOf(body, response.status) };
      if (body === undefined) return { kind: 'unreachable' };
      this.#tellAge(path, Number(response.headers.get('Logring-Stale-Seconds') ?? 0));
      return { kind: 'answered', value: body as Value, computedMs: computedMsOf(response.headers) };
    } catch {
      return { kind: signal.aborted ? 'dropped' : 'unreachable' };
    }
  }

  /** null when the service does not answer. */
  async health(): Promise<Health | null> {
    try {
      const response = await fetch('readyz', {
        cache: 'no-store',
        credentials: 'omit',
        signal: AbortSignal.timeout(PATIENCE_MS),
      });
      return (await response.json()) as Health;
    } catch {
      return null;
    }
  }
}

/** A number that would read otherwise than it was written: too long for a double, or `1.50`. */
export class WrittenNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** Undefined for what is no JSON. */
function parsed(text: string): unknown {
  for (const reviver of [asWritten, undefined]) {
    try {
      return JSON.parse(text, reviver);
    } catch {
      // The reviver gives up on what is nested very deeply; the parser alone does not.
    }
  }
  return undefined;
}

/** Browsers that don't show a reviver the source show such numbers as they read them. */
function asWritten(_: string, value: unknown, context?: { readonly source?: string }): unknown {
  const source = context?.source;
  if (typeof value !== 'number' || source === undefined || String(value) === source) return value;
  return new WrittenNumber(source);
}

function messageOf(body: unknown, status: number): string {
  const message = (body as { error?: { message?: unknown } } | undefined)?.error?.message;
  return typeof message === 'string' ? message : `the server answered ${status}`;
}

function computedMsOf(headers: Headers): number | null {
  const date = Date.parse(headers.get('Date') ?? '');
  return Number.isNaN(date) ? null : date - 1000 * Number(headers.get('Age') ?? 0);
}
