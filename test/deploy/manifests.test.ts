/** Checks that the API accepts the manifests under deploy/kustomize, and that they are what kubeadm installs. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { after, describe, test } from 'node:test';
import { parse, parseAllDocuments } from 'yaml';
import { hasProgram } from '../cluster/lab/namespace.ts';
import { kubeProxy, run } from '../program/run.ts';
import { type DaemonSet, type Probe, probeNames } from './daemon-set.ts';
import { schemaProblems } from './openapi.ts';

const project = resolve(import.meta.dirname, '../..');
const deploy = join(project, 'deploy/kustomize');
const read = (path: string): string => readFileSync(join(deploy, path), 'utf8');
const documents = (text: string): Manifest[] =>
  parseAllDocuments(text).map((document) => document.toJS() as Manifest);

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly data?: Readonly<Record<string, string>>;
}

interface PolicyRule {
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

const overlays = ['base', ...globSync('overlays/*', { cwd: deploy }).sort()];
const files = globSync(['base/*.yaml', 'overlays/*/*.yaml'], { cwd: deploy })
  .filter((path) => !path.endsWith('kustomization.yaml'))
  .sort();
const kustomizeUnavailable = hasProgram('kubectl', 'version', '--client')
  ? false
  : 'needs the program kubectl';

/** Removes the `$patch` directives, which only the merge of a patch uses. */
function withoutDirectives(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value
      .filter((item) => !(typeof item === 'object' && item && '$patch' in item))
      .map(withoutDirectives);
  }
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withoutDirectives(item)]));
}

describe('manifests', () => {
  for (const file of files) {
    test(`${file} fits the schema of the API`, () => {
      const objects = documents(read(file));
      assert.ok(objects.length > 0);
      const isPatch = file.startsWith('overlays/');
      for (const object of objects) {
        const problems = schemaProblems(isPatch ? withoutDirectives(object) : object);
        // A patch may leave out fields: the object that it is merged into has them.
        const own = problems.filter((problem) => !(isPatch && problem.endsWith(': missing')));
        assert.deepEqual(own, [], `${object.kind} ${object.metadata.name}`);
      }
    });
  }

  for (const overlay of overlays) {
    test(`${overlay}: kustomize builds manifests that fit the schema of the API`, {
      skip: kustomizeUnavailable,
    }, () => {
      const { stdout, stderr, status } = spawnSync('kubectl', ['kustomize', join(deploy, overlay)], {
        encoding: 'utf8',
      });
      assert.equal(status, 0, stderr);
      const objects = documents(stdout);
      assert.deepEqual(
        objects.map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ''}/${metadata.name}`).sort(),
        [
          'ClusterRoleBinding /kubeadm:node-proxier',
          'ConfigMap kube-system/kube-proxy',
          'DaemonSet kube-system/kube-proxy',
          'ServiceAccount kube-system/kube-proxy',
        ],
      );
      for (const object of objects) assert.deepEqual(schemaProblems(object), []);
      const data = objects.find(({ kind }) => kind === 'ConfigMap')?.data;
      assert.deepEqual(Object.keys(data ?? {}).sort(), ['config.conf', 'kubeconfig.conf']);
    });

    test(`${overlay}: the kustomization names exactly the files that exist`, () => {
      const kustomization = parse(read(join(overlay, 'kustomization.yaml'))) as {
        resources: string[];
        configMapGenerator?: { files: string[] }[];
        patches?: { path: string }[];
      };
      const named = [
        ...kustomization.resources.filter((path) => !path.startsWith('..')),
        ...(kustomization.configMapGenerator ?? []).flatMap((generator) => generator.files),
        ...(kustomization.patches ?? []).map(({ path }) => path),
      ];
      const there = globSync('*', { cwd: join(deploy, overlay) }).filter(
        (name) => name !== 'kustomization.yaml',
      );
      assert.deepEqual(named.sort(), there.sort());
    });
  }

  test('the schema check reports unknown, wrongly typed and missing fields', () => {
    const daemonSet = parse(read('base/daemon-set.yaml')) as { spec: { template: { spec: object } } };
    daemonSet.spec.template.spec = {
      hostNetwork: 'yes',
      containers: [{ imagee: 'x' }],
      nodeSelector: { a: 1 },
    };
    assert.deepEqual(schemaProblems(daemonSet), [
      '.spec.template.spec.hostNetwork: "yes" is not of type boolean',
      '.spec.template.spec.containers[0].name: missing',
      '.spec.template.spec.containers[0].imagee: unknown',
      '.spec.template.spec.nodeSelector.a: 1 is not of type string',
    ]);
    assert.deepEqual(schemaProblems({ apiVersion: 'v1', kind: 'Sparrow' }), ['no kind v1 Sparrow is known']);
  });
});

describe('the DaemonSet', () => {
  const { version } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8')) as { version: string };
  const base = parse(read('base/daemon-set.yaml')) as DaemonSet;
  const confined = parse(read('overlays/nftables-least-privilege/daemon-set.yaml')) as DaemonSet;

  test("differs from kubeadm's in the image, the ports and the probes only", () => {
    const { spec } = base.spec.template;
    assert.equal(spec.hostNetwork, true);
    assert.equal(spec.serviceAccountName, 'kube-proxy');
    assert.deepEqual(
      spec.containers.map(({ command, volumeMounts }) => ({
        command,
        mounts: volumeMounts.map(({ name, mountPath }) => `${name} ${mountPath}`),
      })),
      [
        {
          command: [
            '/usr/local/bin/kube-proxy',
            '--config=/var/lib/kube-proxy/config.conf',
            '--hostname-override=$(NODE_NAME)',
          ],
          mounts: [
            'kube-proxy /var/lib/kube-proxy',
            'xtables-lock /run/xtables.lock',
            'lib-modules /lib/modules',
          ],
        },
      ],
    );
  });

  test('has the default ports of the program, and probes that ask whether syncs are overdue', () => {
    const [container] = base.spec.template.spec.containers;
    assert.deepEqual(container?.ports, [
      { name: 'healthz', containerPort: 10256 },
      { name: 'metrics', containerPort: 10249 },
    ]);
    for (const name of probeNames) {
      assert.deepEqual(container[name]?.httpGet, { path: '/livez', port: 'healthz' }, name);
    }
  });

  test('a restart by the liveness probe comes after the back-off of the kubelet ends', () => {
    const [container] = base.spec.template.spec.containers;
    const seconds = (probe: Probe | undefined) =>
      (probe?.periodSeconds ?? 0) * (probe?.failureThreshold ?? 0);
    const day = 24 * 60 * 60;
    assert.equal(
      seconds(container?.startupProbe),
      day,
      'while the API server is down, a restart does not help',
    );
    assert.ok(seconds(container?.livenessProbe) >= 600, 'the kubelet ends its back-off after ten minutes');
  });

  test('runs the image of this version', () => {
    const containers = [base, confined].flatMap(({ spec: { template } }) => [
      ...template.spec.containers,
      ...(template.spec.initContainers ?? []),
    ]);
    const images = containers.flatMap(({ image }) => image ?? []);
    assert.deepEqual(images, [`kube-proxy-ts:${version}`, `kube-proxy-ts:${version}`]);
  });

  test('has one capability in the confined variant, after an init container for the settings', () => {
    const { initContainers = [], containers } = confined.spec.template.spec;
    assert.deepEqual(
      containers.map(({ securityContext: { privileged, capabilities } }) => ({
        privileged,
        ...capabilities,
      })),
      [{ privileged: false, drop: ['ALL'], add: ['NET_ADMIN'] }],
    );
    assert.deepEqual(
      initContainers.map(({ command }) => command),
      [[...(base.spec.template.spec.containers[0]?.command ?? []), '--init-only']],
    );
  });
});

describe('the role for the kubectl plugin', () => {
  const objects = documents(readFileSync(join(deploy, '../kubectl-plugin/role.yaml'), 'utf8'));

  test('fits the schema of the API and grants what the plugin asks kubectl for', () => {
    for (const object of objects) assert.deepEqual(schemaProblems(object), []);
    const rules = objects.flatMap((object) => (object as { rules?: PolicyRule[] }).rules ?? []);
    assert.deepEqual(
      rules.map(({ resources, verbs }) => `${verbs} ${resources}`),
      ['get,list pods', 'create pods/portforward'],
    );
  });
});

describe('configuration files', () => {
  const configs = globSync(['kustomize/**/config.conf', 'systemd/config.yaml'], {
    cwd: dirname(deploy),
  }).sort();
  const directory = mkdtempSync(join(tmpdir(), 'kpt-deploy-'));
  after(() => rmSync(directory, { recursive: true }));
  const modes: Readonly<Record<string, string>> = { base: 'iptables', ipvs: 'ipvs' };

  for (const config of configs) {
    test(`${config} is accepted`, async () => {
      const written = join(directory, 'written.yaml');
      const args = ['--config', join(dirname(deploy), config), `--write-config-to=${written}`];
      const { stderr, code } = await run(kubeProxy, args);
      assert.equal(code, 0, stderr);
      const { mode } = parse(readFileSync(written, 'utf8')) as { mode: string };
      assert.equal(mode, modes[dirname(config).split('/').at(-1) ?? ''] ?? 'nftables');
    });
  }

  test('every mode that needs a configuration file has one', () => assert.equal(configs.length, 4));
});
