/** docs/configuration.md, made from the settings as they are declared. Run by itself it writes the file. */

import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { settingTexts } from '../../src/config.js';

export const DOCUMENT = 'docs/configuration.md';

const HEAD = `# Configuration

<!-- Made by \`npm run docs:configuration\` from the settings' declarations in src/config/: change those. -->

Everything is set by environment variables. Any of them may come from a file instead: \`NAME_FILE\` names it, for secrets
and certificates. Every problem of a configuration is reported, not only the first, and an unknown variable that begins
with \`LOGRING_\` stops the start. \`logring --print-config\` prints the effective configuration, secrets masked.
`;

export function configurationDocument(): string {
  const texts = settingTexts();
  const areas = [...new Set(texts.map(({ area }) => area))];
  const cell = (text: string) => text.replaceAll('|', '\\|');
  const tables = areas.map((area) => {
    const rows = texts
      .filter((text) => text.area === area)
      .map(({ name, help, rule, shownDefault, isSecret }) => {
        // Where the rule only says what the help does.
        const more = rule === null || rule.replace('must be ', '') === help ? '' : `; ${rule}`;
        return `| \`${name}\` | ${cell(help + more)}${isSecret ? ' (secret)' : ''} | ${cell(shownDefault)} |`;
      });
    return `\n## ${area}\n\n| Setting | What it is | Default |\n|---|---|---|\n${rows.join('\n')}\n`;
  });
  return HEAD + tables.join('');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(DOCUMENT, configurationDocument());
