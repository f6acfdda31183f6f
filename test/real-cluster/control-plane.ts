import type { ChildProcess } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../cluster/lab/namespace.ts';
import { apiServer, controlPlane, podNetwork, serviceNetwork } from './addresses.ts';
import type { Kubectl } from './kubectl.ts';
import type { Pki } from './pki.ts';
import { endDaemon, startDaemon, untilSuccessful } from './processes.ts';

/** etcd, API server, controller manager and scheduler, in the namespace of this process. */
export class ControlPlane {
  readonly #directory: string;
  readonly #pki: Pki;
  readonly #kubectl: Kubectl;
  #apiServer: ChildProcess | undefined;

  constructor(directory: string, pki: Pki, kubectl: Kubectl) {
    this.#directory = directory;
    this.#pki = pki;
    this.#kubectl = kubectl;
    mkdirSync(directory, { recursive: true });
  }

  async start(): Promise<void> {
    const data = join(this.#directory, 'etcd');
    mkdirSync(data);
    // In memory: etcd waits for the disk at every write.
    run('mount', '-t', 'tmpfs', 'tmpfs', data);
    this.#start('etcd', ['--data-dir', join(data, 'data'), '--quota-backend-bytes', '1000000000']);
    await this.startApiServer();
    this.#start('kube-controller-manager', this.#controllerManagerFlags());
    this.#start('kube-scheduler', this.#kubeconfigFlags('scheduler'));
  }

  async startApiServer(): Promise<void> {
    this.#apiServer = this.#start('kube-apiserver', this.#apiServerFlags());
    await untilSuccessful('API server ready', 180, () => this.#kubectl.run('get', '--raw', '/readyz'));
  }

  async stopApiServer(): Promise<void> {
    if (this.#apiServer) await endDaemon(this.#apiServer, 'SIGTERM');
  }

  #start(program: string, flags: readonly string[]): ChildProcess {
    return startDaemon(join(this.#directory, `${program}.log`), program, flags);
  }

  #apiServerFlags(): string[] {
    const file = (name: string): string => this.#pki.path(name);
    return [
      '--etcd-servers=http://127.0.0.1:2379',
      `--advertise-address=${controlPlane.v4}`,
      '--bind-address=0.0.0.0',
      `--secure-port=${new URL(apiServer).port}`,
      `--tls-cert-file=${file('apiserver.crt')}`,
      `--tls-private-key-file=${file('apiserver.key')}`,
      `--client-ca-file=${file('client-ca.crt')}`,
      `--token-auth-file=${file('tokens.csv')}`,
      `--kubelet-client-certificate=${file('kubelet-client.crt')}`,
      `--kubelet-client-key=${file('kubelet-client.key')}`,
      '--kubelet-preferred-address-types=InternalIP',
      `--requestheader-client-ca-file=${file('ca.crt')}`,
      '--requestheader-allowed-names=front-proxy',
      '--requestheader-username-headers=X-Remote-User',
      '--requestheader-group-headers=X-Remote-Group',
      '--requestheader-extra-headers-prefix=X-Remote-Extra-',
      `--proxy-client-cert-file=${file('front-proxy.crt')}`,
      `--proxy-client-key-file=${file('front-proxy.key')}`,
      `--service-account-key-file=${file('service-accounts.pub')}`,
      `--service-account-signing-key-file=${file('service-accounts.key')}`,
      '--service-account-issuer=https://kubernetes.default.svc.cluster.local',
      `--service-cluster-ip-range=${serviceNetwork}`,
      '--authorization-mode=Node,RBAC',
      '--enable-admission-plugins=NodeRestriction',
      '--allow-privileged=true',
    ];
  }

  #controllerManagerFlags(): string[] {
    return [
      ...this.#kubeconfigFlags('controller-manager'),
      '--allocate-node-cidrs=false',
      `--cluster-cidr=${podNetwork}`,
      `--service-cluster-ip-range=${serviceNetwork}`,
      `--service-account-private-key-file=${this.#pki.path('service-accounts.key')}`,
      `--root-ca-file=${this.#pki.path('ca.crt')}`,
      '--use-service-account-credentials=true',
      // Its default is a folder of this machine, which it would make.
      `--flex-volume-plugin-dir=${join(this.#directory, 'volume-plugins')}`,
    ];
  }

  #kubeconfigFlags(user: string): string[] {
    const file = this.#pki.path(`${user}.kubeconfig`);
    return [
      '--leader-elect=false',
      ...['', 'authentication-', 'authorization-'].map((which) => `--${which}kubeconfig=${file}`),
    ];
  }
}
