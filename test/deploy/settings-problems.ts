import { ConfigError } from '../../src/config/config-error.js';
import { readConfig } from '../../src/config.js';

/**
 * What is wrong with settings as the service would read them. The files that they name are not here, so what
 * it says of certificates in them does not count.
 */
export function problemsOf(settings: Record<string, string>): string[] {
  const own = Object.entries(settings)
    .filter(([name]) => name.startsWith('LOGRING_'))
    .map(([name, value]) => (name.endsWith('_FILE') ? [name.slice(0, -'_FILE'.length), 'a'] : [name, value]));
  try {
    readConfig(Object.fromEntries(own));
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.filter((one) => !one.includes('must be PEM'));
    throw error;
  }
}
