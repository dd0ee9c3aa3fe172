/**
 * What the address says after its `#`: which part is shown, and with which settings.
 * `#/logs?project=abc&tier=PRO`
 */

export type Settings = Readonly<Record<string, string>>;

export interface Route {
  readonly part: string;
  readonly settings: Settings;
}

export function routeOf(hash: string): Route {
  const [path, query] = hash.replace(/^#\/?/, '').split('?', 2);
  return { part: path, settings: Object.fromEntries(new URLSearchParams(query ?? '')) };
}

/** Settings that are empty are left out. */
export function hashOf({ part, settings }: Route): string {
  const given = Object.entries(settings).filter(([, value]) => value !== '');
  const query = new URLSearchParams(given).toString();
  return query === '' ? `#/${part}` : `#/${part}?${query}`;
}
