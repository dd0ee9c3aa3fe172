/** A part of the console: one section of the page, of which one is shown at a time. */

import type { ApiClient } from './api-client.js';
import type { Settings } from './route.js';

export interface Part {
  /** Shows what the settings say; also called while it is shown, when they change. */
  show(settings: Settings): void;
  /** Lets go of requests and timers. */
  hide(): void;
}

/** What the page gives to its parts. */
export interface PartPorts {
  readonly client: ApiClient;
  /**
   * Writes the settings of the part that is shown into the address, without calling show; with a step, the
   * browser's way back leads to those before.
   */
  readonly remember: (settings: Settings, isStep?: boolean) => void;
  /** Says what stands in the way, above everything; null: nothing does. */
  readonly tellProblem: (problem: string | null) => void;
  /** Projects to choose from. */
  readonly projects: () => Promise<readonly string[]>;
  /** Why the service is not ready; empty when it is. */
  readonly lacking: () => Promise<readonly string[]>;
}
