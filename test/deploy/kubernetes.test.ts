/**
 * The chart, and the manifests that it gives: valid by the schemas of their kinds, fitting together, with
 * settings that there are. What it gives is kept in the repository, so only the comparison needs Helm.
 */

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { checkServerIdentity, type PeerCertificate } from 'node:tls';
import { StatefulSet } from 'kubernetes-models/apps/v1';
import { Ingress, NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1';
import { type IContainer, Secret, Service, ServiceAccount } from 'kubernetes-models/v1';
import { expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { problemsOf } from './settings-problems.js';

const CHART = 'deploy/helm/logring';
const GIVEN = [
  { values: 'plain', file: 'deploy/kubernetes/logring.yaml' },
  { values: 'all', file: 'test/deploy/all-manifests.yaml' },
] as const;
const KINDS = { StatefulSet, Ingress, NetworkPolicy, PodDisruptionBudget, Secret, Service, ServiceAccount };

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly labels: Readonly<Record<string, string>> };
}

interface ServiceMonitor extends Manifest {
  readonly apiVersion: string;
  readonly spec: {
    readonly selector: { readonly matchLabels: Readonly<Record<string, string>> };
    readonly endpoints: readonly { readonly port: string; readonly path: string; readonly scheme?: string }[];
  };
}

function manifestsIn(file: string): Manifest[] {
  // Kubernetes reads YAML 1.1, in which 0440 is octal.
  return parseAllDocuments(readFileSync(file, 'utf8'), { version: '1.1' }).map((one) => one.toJSON());
}

test.each(GIVEN)('the manifests of the $values values fit the schemas of their kinds', ({ file }) => {
  for (const manifest of manifestsIn(file)) {
    if (manifest.kind === 'ServiceMonitor') continue;
    const Kind = KINDS[manifest.kind as keyof typeof KINDS] as new (of: Manifest) => { validate(): void };
    expect(() => new Kind(manifest).validate(), manifest.kind).not.toThrow();
  }
  expect(() => new StatefulSet({ spec: { replicas: 'one' } } as never).validate()).toThrow(/replicas/);
});

/** What the chart's README has the members' certificate name. */
const NAMED = '*.logring-headless.default.svc';

/** Whether Node takes a certificate of that name for a host. */
function isNamed(host: string, name: string): boolean {
  const certificate = { subject: {}, subjectaltname: `DNS:${name}` } as PeerCertificate;
  return checkServerIdentity(host, certificate) === undefined;
}

/** As Kubernetes makes them of the pod's name, and the container's shell. */
function settingsOf({ env, command }: IContainer, podName: string): Record<string, string> {
  const settings: Record<string, string> = {};
  for (const { name, value, valueFrom } of env!) {
    if (valueFrom !== undefined) expect(valueFrom.fieldRef?.fieldPath).toBe('metadata.name');
    settings[name] = (value ?? podName).replaceAll(/\$\((\w+)\)/g, (_, other: string) => settings[other]);
  }
  if (command === undefined) return settings;
  const [shell, ...rest] = command.map((argument) => argument.replace('exec node dist/src/main.js', 'env'));
  const { stdout } = spawnSync(shell, rest, { env: settings, encoding: 'utf8' });
  return Object.fromEntries(
    stdout
      .trim()
      .split('\n')
      .map((line) => /^(\w+)=(.*)$/.exec(line)!.slice(1)),
  );
}

test.each(GIVEN)('the manifests of the $values values belong together', ({ file }) => {
  const manifests = manifestsIn(file);
  const of = <T>(kind: string) => manifests.filter((one) => one.kind === kind) as T[];
  const names = (kind: string) => of<Manifest>(kind).map(({ metadata }) => metadata.name);
  const [{ spec }] = of<StatefulSet>('StatefulSet');
  const { template, selector, serviceName, replicas, volumeClaimTemplates } = spec!;
  const pod = template.spec!;
  const [container] = pod.containers;
  expect(template.metadata?.labels).toMatchObject(selector.matchLabels!);
  expect(names('Service')).toContain(serviceName);
  for (const service of of<Service>('Service')) {
    expect(service.spec?.selector).toEqual(selector.matchLabels);
    const portNames = container.ports!.map(({ name }) => name);
    expect(service.spec?.ports?.map(({ targetPort }) => targetPort)).toEqual(
      service.metadata?.name === serviceName ? portNames : portNames.slice(0, 1),
    );
  }
  for (const budget of of<PodDisruptionBudget>('PodDisruptionBudget'))
    expect(budget.spec?.selector).toEqual(selector);
  for (const policy of of<NetworkPolicy>('NetworkPolicy')) expect(policy.spec?.podSelector).toEqual(selector);
  for (const ingress of of<Ingress>('Ingress')) {
    const { service } = ingress.spec!.rules![0].http!.paths[0].backend;
    expect(names('Service')).toContain(service?.name);
  }
  for (const { apiVersion, spec } of of<ServiceMonitor>('ServiceMonitor')) {
    expect(apiVersion).toBe('monitoring.coreos.com/v1');
    const selected = of<Service>('Service').filter(({ metadata }) =>
      Object.entries(spec.selector.matchLabels).every(
        ([label, value]) => metadata?.labels?.[label] === value,
      ),
    );
    // Else it would be scraped twice.
    expect(selected).toHaveLength(1);
    expect(spec.endpoints[0]).toMatchObject({ port: selected[0].spec?.ports?.[0].name, path: '/metrics' });
  }
  expect(names('ServiceAccount')).toContain(pod.serviceAccountName);

  const volumes = [...pod.volumes!, ...(volumeClaimTemplates ?? []).map(({ metadata }) => metadata!)];
  expect(volumes.map(({ name }) => name).sort()).toEqual(
    container.volumeMounts!.map(({ name }) => name).sort(),
  );
  const podNames = Array.from({ length: replicas! }, (_, i) => `${names('StatefulSet')[0]}-${i}`);
  const allSettings = podNames.map((podName) => settingsOf(container, podName));
  for (const one of allSettings) expect(problemsOf(one)).toEqual([]);
  const [settings] = allSettings;
  const zones = new Set(allSettings.map(({ LOGRING_ZONE }) => LOGRING_ZONE));
  expect([...zones].join()).toBe(settings.LOGRING_ZONES ?? '');
  const urls = new Set(allSettings.map(({ LOGRING_CLUSTER_URL }) => LOGRING_CLUSTER_URL));
  expect(urls.size).toBe(podNames.length);
  for (const url of urls)
    if (url?.startsWith('https:')) expect(isNamed(new URL(url).hostname, NAMED)).toBe(true);
  const mounts = container.volumeMounts!.map(({ mountPath }) => mountPath);
  for (const [name, value] of Object.entries(settings))
    if (name.endsWith('_FILE')) expect(mounts).toContain(value.slice(0, value.lastIndexOf('/')));
  for (const secret of of<Secret>('Secret')) {
    expect(pod.volumes?.map((volume) => volume.secret?.secretName)).toContain(secret.metadata?.name);
    const { LOGRING_API_KEYS_FILE, LOGRING_CLUSTER_KEYS_FILE } = settings;
    const files = [LOGRING_API_KEYS_FILE, LOGRING_CLUSTER_KEYS_FILE].filter((path) => path !== undefined);
    expect(Object.keys(secret.stringData!).map((name) => `/secrets/${name}`)).toEqual(files);
  }
  // With a Service named logring they would be LOGRING_PORT=tcp://… and names that are no settings.
  expect(pod.enableServiceLinks).toBe(false);
  expect(problemsOf({ LOGRING_PORT: 'tcp://10.0.0.1:4000', LOGRING_SERVICE_HOST: '10.0.0.1' })).toEqual([
    'LOGRING_SERVICE_HOST: is not a setting (see --help)',
    expect.stringContaining('LOGRING_PORT: must be'),
  ]);
  const probes = [container.startupProbe, container.livenessProbe, container.readinessProbe];
  expect(probes.map((probe) => probe?.httpGet?.path)).toEqual(['/livez', '/livez', '/readyz']);
  const scheme = settings.LOGRING_TLS_CERT_FILE === undefined ? 'HTTP' : 'HTTPS';
  for (const probe of probes) expect(probe?.httpGet).toMatchObject({ port: 'http', scheme });
});

test('between them the two sets of values have every kind, and the chart is of our version', () => {
  const kinds = new Set(GIVEN.flatMap(({ file }) => manifestsIn(file).map(({ kind }) => kind)));
  expect([...kinds].sort()).toEqual([...Object.keys(KINDS), 'ServiceMonitor'].sort());
  const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
  expect(parse(readFileSync(`${CHART}/Chart.yaml`, 'utf8'))).toMatchObject({ version, appVersion: version });
});

const helm = ['helm', '.cache/helm/helm'].find((program) => !spawnSync(program, ['version']).error);
if (helm === undefined) console.log('skipped: what Helm says of the chart; it is not installed');

function runHelm(
  command: string,
  ...args: string[]
): { status: number | null; stdout: string; stderr: string } {
  // Built from its source, Helm knows no version of Kubernetes but an old one.
  return spawnSync(helm!, [...command.split(' '), '--kube-version', '1.29', ...args], { encoding: 'utf8' });
}

test.skipIf(helm === undefined).each(GIVEN)('Helm gives what is kept, of the $values values', (given) => {
  const values = ['--values', `${CHART}/ci/${given.values}-values.yaml`];
  const linted = runHelm('lint --strict', CHART, ...values);
  expect([linted.status, linted.stdout + linted.stderr]).toEqual([
    0,
    expect.stringContaining('0 chart(s) failed'),
  ]);
  const { stdout, stderr } = runHelm('template logring', CHART, ...values);
  expect(stderr).toBe('');
  expect(stdout).toBe(readFileSync(given.file, 'utf8'));
});

test.skipIf(helm === undefined)('the chart refuses what could not work, and says what to set', () => {
  const whole = { 'image.repository': 'logring', 'keys.api': 'one' };
  const refusal = (values: Record<string, string>) => {
    const set = Object.entries(values).flatMap(([name, value]) => ['--set-string', `${name}=${value}`]);
    return runHelm('template logring', CHART, ...set).stderr;
  };
  expect(runHelm('lint --strict', CHART).status).toBe(0);
  expect(refusal(whole)).toBe('');
  expect(refusal({ 'keys.api': 'one' })).toContain('set image.repository');
  expect(refusal({ 'image.repository': 'logring' })).toContain('set one of keys.existingSecret');
  expect(refusal({ ...whole, 'keys.existingSecret': 'logring' })).toContain('set one of keys.existingSecret');
  // Helm's versions say it differently.
  expect(refusal({ ...whole, replicas: '2' })).toMatch(/replicas.* not allowed/);
  const zones = (...set: string[]) =>
    runHelm('template logring', CHART, '--set', ['image.repository=l,keys.api=one,zones=2', ...set].join());
  expect(zones().stderr).toContain('several pods read the same Kafka: set config.LOGRING_KAFKA_BROKERS');
  expect(zones('config.LOGRING_KAFKA_BROKERS=k:1').stdout).toContain('topologyKey: kubernetes.io/hostname');
  expect(zones('config.LOGRING_KAFKA_BROKERS=k:1', 'config.LOGRING_ZONES_FILE=/f').stderr).toContain(
    'config.LOGRING_ZONES_FILE: with zones above 1 the chart sets it',
  );
  const members = (...set: string[]) => zones('zones=1,members=3,config.LOGRING_KAFKA_BROKERS=k:1', ...set);
  expect(members().stderr).toContain('set keys.cluster');
  expect(members('keys.cluster=k').stdout).toContain('replicas: 3');
  expect(members('keys.cluster=k').stdout).toContain('sessionAffinity: ClientIP');
  expect(members('keys.cluster=k').stdout.match(/publishNotReadyAddresses: true/g)).toHaveLength(2);
  expect(members('keys.cluster=k', 'zones=2').stdout.match(/publishNotReadyAddresses/g)).toHaveLength(1);
  expect(members('keys.cluster=k', 'keys.api=', 'keys.existingSecret=s').stderr).toContain(
    'keys.cluster: put it into keys.existingSecret',
  );
  expect(members('keys.cluster=k', 'config.LOGRING_CLUSTER_URL_FILE=/f').stderr).toContain(
    'with members above 1',
  );
  expect(members('keys.cluster=k', 'config.LOGRING_CLUSTER_KEYS=k').stderr).toContain(
    'config.LOGRING_CLUSTER_KEYS: with members above 1 the chart sets it',
  );
  expect(refusal({ ...whole, 'config.LOGRING_ZONE': 'east' })).toBe('');
  expect(refusal({ ...whole, 'config.LOGRING_PORT': '80' })).toContain('LOGRING_PORT');
  expect(refusal({ ...whole, 'config.KAFKA_BROKERS': 'a:1' })).toContain('KAFKA_BROKERS');
});
