/** Following stops adding entries while the reader has scrolled away from the newest one. */

import { found } from './dom.js';

const line = found('logs-paused', HTMLDivElement);
const goOnButton = found('logs-go-on', HTMLButtonElement);

export class FollowPause {
  readonly #list: HTMLElement;
  readonly #goOn: () => void;
  #isFollowing = false;
  #isAway = false;

  /** `goOn` is called when the reader is back at the newest entry. */
  constructor(list: HTMLElement, goOn: () => void) {
    this.#list = list;
    this.#goOn = goOn;
    window.addEventListener('scroll', () => this.#update(), { passive: true });
    goOnButton.addEventListener('click', () => window.scrollTo({ top: 0 }));
  }

  get isPaused(): boolean {
    return this.#isFollowing && this.#isAway;
  }

  set isFollowing(isFollowing: boolean) {
    this.#isFollowing = isFollowing;
    this.#update();
  }

  #update(): void {
    const wasPaused = !line.hidden;
    this.#isAway = this.#list.getBoundingClientRect().top < 0;
    line.hidden = !this.isPaused;
    if (wasPaused && this.#isFollowing && !this.#isAway) this.#goOn();
  }
}
