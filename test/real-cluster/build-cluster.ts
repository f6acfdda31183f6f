import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../cluster/lab/namespace.ts';
import { dnsService, nodes } from './addresses.ts';
import { ControlPlane } from './control-plane.ts';
import { corednsImage } from './images/test-images.ts';
import type { Order } from './inside.ts';
import { Kubectl } from './kubectl.ts';
import { WebService } from './load.ts';
import { LoadBalancer } from './load-balancer.ts';
import { Machine } from './machine.ts';
import { buildControlPlaneNetwork } from './network.ts';
import { Pki } from './pki.ts';
import { DeployedProxy } from './proxy.ts';
import type { Stage } from './scenarios/scenario.ts';

/** Starts a cluster without a kube-proxy, in the namespaces of this process. Returns when all nodes are ready. */
export async function buildCluster(order: Order, say: (text: string) => void): Promise<Stage> {
  const { folders, options } = order;
  run('mount', '-t', 'tmpfs', 'tmpfs', '/run');
  buildControlPlaneNetwork();
  const pki = new Pki(join(folders.state, 'pki'));
  pki.forgetAuthority();
  const kubectl = new Kubectl(pki.path('admin.kubeconfig'), folders.state);
  const controlPlane = new ControlPlane(join(folders.state, 'control-plane'), pki, kubectl);
  say('starting etcd and the control plane');
  await controlPlane.start();
  say(`starting ${nodes.length} nodes`);
  const machines = nodes.map((node) => new Machine(node, { ...order, pki, kubectl }));
  await Promise.all(machines.map((machine) => machine.start()));
  await kubectl.run('wait', '--for=condition=Ready', 'node', '--all', '--timeout=180s');
  const coredns = readFileSync(join(import.meta.dirname, 'coredns.yaml'), 'utf8');
  const filledIn = coredns.replace('image: IMAGE', `image: ${corednsImage}`);
  await kubectl.apply('coredns', filledIn.replace('clusterIP: ADDRESS', `clusterIP: ${dnsService}`));
  new LoadBalancer(pki, join(folders.state, 'control-plane/load-balancer.log')).start();
  const proxy = new DeployedProxy(kubectl, machines, join(folders.state, 'deploy'));
  const web = new WebService(kubectl, machines, order.agnhostImage);
  return { mode: options.mode, which: options.proxy, kubectl, controlPlane, machines, proxy, web, pki };
}
