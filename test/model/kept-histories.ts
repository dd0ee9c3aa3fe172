/** Cut-down histories that once disagreed with the model; they are replayed before any other. */

import type { History } from './history.js';

export const KEPT_HISTORIES: readonly (History & { readonly because: string })[] = [];
