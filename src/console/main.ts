/**
 * The console's beginning: signs in with a key that only this tab keeps, and shows the part that the address
 * names.
 */

import { type Answer, ApiClient } from './api-client.js';
import { element, found } from './dom.js';
import { FunctionsPart } from './functions-part.js';
import { IngestPart } from './ingest-part.js';
import { beginKeys } from './keys.js';
import { LogsPart } from './logs-part.js';
import { OverviewPart } from './overview-part.js';
import type { Part, PartPorts } from './part.js';
import { UNREACHABLE } from './questions.js';
import { ReadinessLine } from './readiness-line.js';
import { hashOf, routeOf } from './route.js';
import { UsagePart } from './usage-part.js';
import { beginZoneSwitch } from './zone-switch.js';

const KEY_ITEM = 'logring-key';
/** What the sign-in form says after the page was loaded again. */
const NOTE_ITEM = 'logring-note';
/** What a request header can carry. */
const KEY_FORM = /^[\x21-\x7e]+$/;

const PARTS = new Map<string, { readonly title: string; readonly make: (ports: PartPorts) => Part }>([
  ['overview', { title: 'Overview', make: (ports) => new OverviewPart(ports) }],
  ['logs', { title: 'Logs', make: (ports) => new LogsPart(ports) }],
  ['functions', { title: 'Functions', make: (ports) => new FunctionsPart(ports) }],
  ['usage', { title: 'Usage', make: (ports) => new UsagePart(ports) }],
  ['ingest', { title: 'Ingest', make: (ports) => new IngestPart(ports) }],
]);
const [FIRST_PART] = PARTS.keys();

interface KnownProjects {
  readonly projects: readonly string[];
}

const navigation = found('parts', HTMLElement);
const signInSection = found('sign-in', HTMLElement);
const signInForm = found('sign-in-form', HTMLFormElement);
const keyField = found('key', HTMLInputElement);
const keyProblem = found('key-problem', HTMLParagraphElement);
const signOutButton = found('sign-out', HTMLButtonElement);
const problemLine = found('problem', HTMLParagraphElement);
const projectList = found('projects', HTMLDataListElement);
const main = found('main', HTMLElement);

// The address is the parts'.
found('skip', HTMLAnchorElement).addEventListener('click', (event) => {
  event.preventDefault();
  main.focus();
});

/** Made when they are first shown. */
const parts = new Map<string, Part>();
let shownName: string | null = null;

function askProjects(client: ApiClient): Promise<Answer<KnownProjects>> {
  return client.get('api/projects', {}, new AbortController().signal);
}

/** What is wrong with a key, or null. */
async function problemOf(key: string): Promise<string | null> {
  if (!KEY_FORM.test(key)) return 'This can’t be a key: keys are visible ASCII characters without spaces.';
  let isKnown = true;
  const answer = await askProjects(
    new ApiClient(key, () => {
      isKnown = false;
    }),
  );
  if (!isKnown) return 'Logring does not know this key.';
  if (answer.kind === 'refused') return answer.message;
  return answer.kind === 'answered' ? null : 'Logring can’t be reached.';
}

/** Ends with a page loaded again: what was shown goes with the key. */
function signOut(note: string): void {
  sessionStorage.clear();
  if (note !== '') sessionStorage.setItem(NOTE_ITEM, note);
  location.reload();
}

function askForKey(): void {
  keyProblem.textContent = sessionStorage.getItem(NOTE_ITEM) ?? '';
  sessionStorage.removeItem(NOTE_ITEM);
  signInSection.hidden = false;
  keyField.focus();
  signInForm.addEventListener('submit', async (event) => {
    event.preventDefault();
    const key = keyField.value.trim();
    const problem = await problemOf(key);
    keyProblem.textContent = problem ?? '';
    if (problem !== null) {
      keyField.select();
      return;
    }
    keyField.value = '';
    sessionStorage.setItem(KEY_ITEM, key);
    signInSection.hidden = true;
    begin(key);
  });
}

function begin(key: string): void {
  const client = new ApiClient(
    key,
    () => signOut('Logring does not know this key any more.'),
    (path, staleSeconds) => readiness.tellAge(path, staleSeconds),
  );
  let projects: Promise<readonly string[]> | null = null;
  const readiness = new ReadinessLine(client);
  readiness.begin();
  const ports: PartPorts = {
    client,
    lacking: () => readiness.reasons(),
    remember: (settings, isStep = false) => {
      if (shownName === null) return;
      const hash = hashOf({ part: shownName, settings });
      if (isStep) history.pushState(null, '', hash);
      else history.replaceState(null, '', hash);
      linkParts(settings.project ?? '');
    },
    tellProblem,
    projects: () => {
      projects ??= askProjects(client).then((answer) => {
        const names = answer.kind === 'answered' ? answer.value.projects : [];
        projectList.replaceChildren(...names.map((name) => element('option', { value: name })));
        // Asked again when there may be some.
        if (names.length === 0) projects = null;
        if (answer.kind === 'unreachable') tellProblem(UNREACHABLE);
        return names;
      });
      return projects;
    },
  };
  navigation.hidden = false;
  signOutButton.hidden = false;
  signOutButton.addEventListener('click', () => signOut(''));
  window.addEventListener('hashchange', () => {
    readiness.forgetAges();
    showRoute(ports, true);
  });
  beginZoneSwitch(() => showRoute(ports, false));
  beginKeys();
  void ports.projects();
  showRoute(ports, false);
}

function showRoute(ports: PartPorts, isMove: boolean): void {
  const { part: asked, settings } = routeOf(location.hash);
  const name = PARTS.has(asked) ? asked : FIRST_PART;
  const { title, make } = PARTS.get(name)!;
  const isOther = name !== shownName;
  if (isOther && shownName !== null) {
    parts.get(shownName)!.hide();
    found(shownName, HTMLElement).hidden = true;
    tellProblem(null);
  }
  shownName = name;
  const part = parts.get(name) ?? make(ports);
  parts.set(name, part);
  found(name, HTMLElement).hidden = false;
  document.title = `${title} – Logring`;
  linkParts(settings.project ?? '');
  part.show(settings);
  if (isMove && isOther) main.focus();
}

/** The links to the parts take the project along. */
function linkParts(project: string): void {
  for (const link of navigation.querySelectorAll('a')) {
    const part = link.dataset.part ?? FIRST_PART;
    link.href = hashOf({ part, settings: { project } });
    if (part === shownName) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
}

function tellProblem(problem: string | null): void {
  const text = problem ?? '';
  problemLine.hidden = text === '';
  // Set again, it would be read out again.
  if (problemLine.textContent !== text) problemLine.textContent = text;
}

const key = sessionStorage.getItem(KEY_ITEM);
if (key === null) askForKey();
else begin(key);
