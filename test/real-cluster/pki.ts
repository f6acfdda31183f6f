import { generateKeyPairSync } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type KeyPair, TestAuthority } from '../cluster/apiserver/certificates.ts';
import { apiServer, controlPlane, firstServiceAddresses, nodes } from './addresses.ts';

/** Users with a token, and their groups. */
const users: Readonly<Record<string, readonly string[]>> = {
  admin: ['admin', 'system:masters'],
  'controller-manager': ['system:kube-controller-manager'],
  scheduler: ['system:kube-scheduler'],
  ...Object.fromEntries(nodes.map((node) => [`node${node}`, [`system:node:node${node}`, 'system:nodes']])),
};

const apiServerNames = [
  ...['127.0.0.1', controlPlane.v4, controlPlane.v6, ...firstServiceAddresses].map(
    (address) => `IP:${address}`,
  ),
  ...['', '.default', '.default.svc', '.default.svc.cluster.local'].map(
    (suffix) => `DNS:kubernetes${suffix}`,
  ),
  'DNS:localhost',
];

/** The keys, certificates, tokens and kubeconfigs of the cluster, as files of one folder. */
export class Pki {
  readonly directory: string;
  readonly #authority = new TestAuthority();

  constructor(directory: string) {
    this.directory = directory;
    mkdirSync(directory, { recursive: true });
    this.write('ca.crt', this.#authority.cert);
    this.write('client-ca.crt', this.#authority.cert);
    this.#writePair('apiserver', this.#authority.server(apiServerNames));
    this.#writePair('kubelet-client', this.#authority.client('kube-apiserver', ['system:masters']));
    this.#writePair('front-proxy', this.#authority.client('front-proxy'));
    this.#writeServiceAccountKeys();
    const tokens = Object.entries(users).map(
      ([token, [user, ...groups]]) => `${token},${user},${token},"${groups.join()}"`,
    );
    this.write('tokens.csv', `${tokens.join('\n')}\n`);
    for (const token of Object.keys(users)) this.#writeKubeconfig(token, { token });
    // Some tests expect that their own kubeconfig has a client certificate.
    const { cert, key } = this.#authority.client('admin', ['system:masters']);
    this.#writeKubeconfig('tests', {
      'client-certificate-data': base64(cert),
      'client-key-data': base64(key),
    });
  }

  path(name: string): string {
    return join(this.directory, name);
  }

  write(name: string, text: string): void {
    writeFileSync(this.path(name), text);
  }

  /** The certificate authority is needed only while certificates are issued. */
  forgetAuthority(): void {
    this.#authority.remove();
  }

  #writePair(name: string, { cert, key }: KeyPair): void {
    this.write(`${name}.crt`, cert);
    this.write(`${name}.key`, key);
  }

  #writeServiceAccountKeys(): void {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
    this.write('service-accounts.key', privateKey.export({ type: 'sec1', format: 'pem' }).toString());
    this.write('service-accounts.pub', publicKey.export({ type: 'spki', format: 'pem' }).toString());
  }

  #writeKubeconfig(name: string, user: Readonly<Record<string, string>>): void {
    const cluster = { server: apiServer, 'certificate-authority-data': base64(this.#authority.cert) };
    const config = {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'kpt', cluster }],
      users: [{ name: 'me', user }],
      contexts: [{ name: 'kpt', context: { cluster: 'kpt', user: 'me' } }],
      'current-context': 'kpt',
    };
    this.write(`${name}.kubeconfig`, JSON.stringify(config, null, 2));
  }
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}
