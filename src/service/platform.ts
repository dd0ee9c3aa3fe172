/** What a service is given by the process that it runs in. */

import type { Logger } from 'pino';

export interface Platform {
  readonly logger: Logger;
  readonly clock: { readonly nowUs: () => number; readonly monotonicUs: () => number };
  readonly version: string;
  /** Ends the process: something failed that the service can't go on with. */
  readonly onFatal: (error: unknown) => void;
  /** Told the key that was made because none is configured. */
  readonly announceKey: (key: string) => void;
}
