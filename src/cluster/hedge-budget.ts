/** How many questions may be asked a second time before the first is answered: a share of all. */

import { HEDGE_BURST, HEDGE_SHARE } from './limits.js';

export class HedgeBudget {
  #credit = HEDGE_BURST;
  takenCount = 0;

  /** A question was asked. */
  earn(): void {
    this.#credit = Math.min(HEDGE_BURST, this.#credit + HEDGE_SHARE);
  }

  /** Whether one more may be. Beside a member that is silent, any may. */
  take(isSilent: boolean): boolean {
    if (!isSilent) {
      if (this.#credit < 1) return false;
      this.#credit -= 1;
    }
    this.takenCount += 1;
    return true;
  }
}
