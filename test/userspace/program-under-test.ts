import { spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { eventually } from '../eventually.ts';
import { kubeProxy } from '../program/run.ts';
import type { Cleanups, Peer } from './peers.ts';

/** A TCP service on port 80 with one endpoint. */
export interface ServedPeer {
  readonly name: string;
  readonly clusterIP: string;
  readonly nodePort?: number;
  readonly peer: Peer;
}

export interface StartOptions {
  readonly uid?: number;
  /** A command that runs the program. */
  readonly through?: readonly string[];
  readonly flags?: readonly string[];
}

export interface RunningProgram {
  readonly pid: number;
  /** What it has written so far. */
  stderr(): string;
}

/** Writes manifests to a directory of their own; returns the file. */
export function writeManifests(cleanups: Cleanups, ...services: readonly ServedPeer[]): string {
  const directory = mkdtempSync(join(tmpdir(), 'kpt-userspace-'));
  cleanups.add(() => rmSync(directory, { recursive: true }));
  chmodSync(directory, 0o755);
  const file = join(directory, 'services.yaml');
  const objects = services.flatMap(objectsOf);
  writeFileSync(file, objects.map((object) => JSON.stringify(object)).join('\n---\n'));
  return file;
}

/** Starts the program on manifests and waits for a pattern in its log. */
export async function startProgram(
  cleanups: Cleanups,
  manifests: string,
  pattern: RegExp,
  { uid, through = [], flags = [] }: StartOptions = {},
): Promise<RunningProgram> {
  const own = ['--proxy-mode=userspace', `--manifests=${manifests}`, '--hostname-override=n1', ...flags];
  const [command = '', ...args] = [...through, kubeProxy, ...own];
  const child = spawn(command, args, {
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...process.env, HOME: tmpdir() },
    ...(uid !== undefined && { uid, gid: uid }),
  });
  let stderr = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const ended = new Promise((resolve) => child.on('close', resolve));
  cleanups.add(async () => {
    child.kill();
    await ended;
  });
  const isWritten = () => {
    if (pattern.test(stderr)) return true;
    if (child.exitCode !== null) throw new Error(`ended without ${pattern}:\n${stderr}`);
    return false;
  };
  await eventually(`${pattern} is written`, isWritten, { everyMs: 20, onTimeout: () => stderr });
  return { pid: child.pid ?? 0, stderr: () => stderr };
}

function objectsOf({ name, clusterIP, nodePort, peer: { ip, port } }: ServedPeer): object[] {
  const metadata = { name, namespace: 'default' };
  const portOf = { name: 'http', port: 80, protocol: 'TCP', targetPort: port };
  const ports = [nodePort === undefined ? portOf : { ...portOf, nodePort }];
  const type = nodePort === undefined ? 'ClusterIP' : 'NodePort';
  return [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata,
      spec: { type, clusterIP, clusterIPs: [clusterIP], ports },
    },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { ...metadata, name: `${name}-1`, labels: { 'kubernetes.io/service-name': name } },
      addressType: 'IPv4',
      endpoints: [{ addresses: [ip], conditions: { ready: true } }],
      ports: [{ name: 'http', port, protocol: 'TCP' }],
    },
  ];
}
