import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { TestAuthority } from '../../cluster/apiserver/certificates.ts';
import { apiServer } from '../addresses.ts';
import { succeed, untilSuccessful } from '../processes.ts';
import type { Scenario, Stage } from './scenario.ts';

const user = 'system:kube-proxy';
const folder = '/var/lib/kube-proxy-certificate';
const volumeName = 'certificate';

/** Where the proxies have their client certificate from, instead of the token of a service account. */
const kubeconfig = `apiVersion: v1
kind: Config
clusters:
  - name: default
    cluster:
      certificate-authority: /var/run/secrets/kubernetes.io/serviceaccount/ca.crt
      server: ${apiServer}
contexts:
  - name: default
    context: { cluster: default, user: default }
current-context: default
users:
  - name: default
    user: { client-certificate: ${folder}/tls.crt, client-key: ${folder}/tls.key }
`;

/** A patch of the DaemonSet's pods. */
function podPatch(mount: object, volume: object): string {
  const containers = [{ name: 'kube-proxy', volumeMounts: [{ mountPath: folder, ...mount }] }];
  return JSON.stringify({
    spec: { template: { spec: { containers, volumes: [{ name: volumeName, ...volume }] } } },
  });
}

/**
 * The proxies log in with client certificates. A new authority issues new ones; then the old authority is trusted no
 * longer, and all connections to the API server end.
 */
export const scenario: Scenario = {
  prepare: async (stage) => {
    const { proxy, kubectl, pki, which, mode } = stage;
    const old = new TestAuthority('old-clients');
    pki.write('client-ca.crt', `${readFileSync(pki.path('ca.crt'), 'utf8')}${old.cert}`);
    await issue(stage, old, 'old');
    old.remove();
    await proxy.deploy({ which, mode });
    const data = JSON.stringify({ data: { 'kubeconfig.conf': kubeconfig } });
    await kubectl.run('--namespace=kube-system', 'patch', 'configmap', 'kube-proxy', '--patch', data);
    const patch = podPatch(
      { name: volumeName, readOnly: true },
      { secret: { secretName: 'kube-proxy-certificate' } },
    );
    await kubectl.run('--namespace=kube-system', 'patch', 'daemonset', 'kube-proxy', '--patch', patch);
    await proxy.rolledOut();
  },
  play: async (stage) => {
    const { pki, controlPlane, machines, web } = stage;
    const next = new TestAuthority('new-clients');
    const own = readFileSync(pki.path('ca.crt'), 'utf8');
    pki.write('client-ca.crt', `${readFileSync(pki.path('client-ca.crt'), 'utf8')}${next.cert}`);
    const certificate = await issue(stage, next, 'new');
    next.remove();
    for (const machine of machines)
      await untilSuccessful(`the new certificate on ${machine.name}`, 180, async () => {
        const glob = '/var/lib/kubelet/pods/*/volumes/kubernetes.io~secret/certificate/tls.crt';
        const found = await machine.run('sh', ['-c', `cat ${glob}`]);
        if (found.trim() !== certificate.trim()) throw new Error('still the old one');
      });
    await sleep(5_000);
    pki.write('client-ca.crt', `${own}${next.cert}`);
    await controlPlane.stopApiServer();
    await controlPlane.startApiServer();
    await assertRefused(stage);
    await web.assertChangesArrive();
  },
  restore: async ({ proxy, kubectl, which, mode }) => {
    const patch = podPatch({ $patch: 'delete' }, { $patch: 'delete' });
    await kubectl.run('--namespace=kube-system', 'patch', 'daemonset', 'kube-proxy', '--patch', patch);
    await proxy.deploy({ which, mode });
  },
};

/** Writes a client certificate for the proxies into their Secret, and returns it. */
async function issue({ kubectl, pki }: Stage, authority: TestAuthority, name: string): Promise<string> {
  const { cert, key } = authority.client(user);
  pki.write(`proxy-${name}.crt`, cert);
  pki.write(`proxy-${name}.key`, key);
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    type: 'kubernetes.io/tls',
    metadata: { name: 'kube-proxy-certificate', namespace: 'kube-system' },
    stringData: { 'tls.crt': cert, 'tls.key': key },
  };
  await kubectl.apply('certificate', [secret]);
  return cert;
}

/** Without this check, proxies that kept their old certificate would go unnoticed. */
async function assertRefused({ pki }: Stage): Promise<void> {
  const old = ['--cert', pki.path('proxy-old.crt'), '--key', pki.path('proxy-old.key')];
  const status = await succeed('curl', [
    ...['--silent', '--output', '/dev/null', '--write-out', '%{http_code}', '--cacert', pki.path('ca.crt')],
    ...old,
    `${apiServer}/api/v1/services`,
  ]);
  if (status !== '401') throw new Error(`the API server answers ${status} to the old certificate, not 401`);
}
