/** The program as process 1 of a container: the kernel passes it only signals that it handles. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { resolve } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { enterNamespace, labUnavailable } from '../cluster/lab/namespace.ts';
import { paced } from '../cluster/lab/pace.ts';
import { eventually } from '../eventually.ts';
import { kubeProxy } from './run.ts';
import { Site } from './started.ts';

const skip = labUnavailable();
if (skip === undefined) enterNamespace(import.meta.url);

const commands = {
  'the command': [kubeProxy],
  'the bundle': [process.execPath, resolve(kubeProxy, '../../dist/kube-proxy.js')],
  'the sources': [process.execPath, resolve(kubeProxy, '../launch.js'), 'kube-proxy'],
};
const signals = ['SIGTERM', 'SIGINT'] as const;
type Signal = (typeof signals)[number];

/** A command that runs as process 1 of a PID namespace. */
class ProcessOne {
  readonly #child: ChildProcess;
  readonly exitCode: Promise<number | null>;
  stderr = '';

  constructor(command: readonly string[]) {
    const options = ['--pid', '--fork', '--kill-child', '--mount-proc'];
    this.#child = spawn('unshare', [...options, ...command], { stdio: ['ignore', 'ignore', 'pipe'] });
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text;
    });
    this.exitCode = new Promise((settle) => this.#child.on('close', settle));
  }

  /** Waits until the program has written to its log. */
  async logged(): Promise<void> {
    await eventually('a log record', async () => this.stderr !== '', { everyMs: 1 });
  }

  /** Waits until Node handles the signal: it does so before it runs the first JavaScript. */
  async nodeHandles(signal: Signal): Promise<void> {
    const bit = 1 << (constants.signals[signal] - 1);
    await eventually(`a handler for ${signal}`, async () => (this.#handledByNode() & bit) !== 0, {
      everyMs: 1,
      onTimeout: () => this.stderr,
    });
  }

  /** Sends the signal once. Returns the exit code, which is that of SIGKILL if the signal does not end the program. */
  async end(signal: Signal): Promise<number | null> {
    const pid = this.#pid();
    process.kill(pid, signal);
    const timer = setTimeout(() => process.kill(pid, 'SIGKILL'), paced(10_000));
    return this.exitCode.finally(() => clearTimeout(timer));
  }

  /** The signals that process 1 handles, as bits; 0 while it is not Node. */
  #handledByNode(): number {
    try {
      const pid = this.#pid();
      if (!readlinkSync(`/proc/${pid}/exe`).endsWith('/node')) return 0;
      const status = readFileSync(`/proc/${pid}/status`, 'utf8');
      const [, bits = '0'] = /^SigCgt:\s*[0-9a-f]{8}([0-9a-f]{8})$/m.exec(status) ?? [];
      return Number.parseInt(bits, 16);
    } catch {
      return 0;
    }
  }

  #pid(): number {
    const { pid } = this.#child;
    const child = Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8'));
    assert.ok(child > 1, `process 1 does not run:\n${this.stderr}`);
    return child;
  }
}

describe('kube-proxy as process 1', { skip: skip ?? false }, () => {
  let site: Site;

  before(async () => {
    site = await Site.open();
  });
  after(() => site.close());

  const start = (command: readonly string[]) => new ProcessOne([...command, '--config', site.writeConfig()]);

  for (const [name, command] of Object.entries(commands)) {
    for (const signal of signals) {
      const expected = 128 + constants.signals[signal];

      it(`${signal} ends ${name} while Node starts, before any of our code runs`, async () => {
        const program = start(command);
        await program.nodeHandles(signal);
        assert.equal(await program.end(signal), expected, program.stderr);
      });
    }

    it(`SIGTERM ends ${name} at any time after the first log record`, async () => {
      for (const ms of [0, 20, 50, 100, 200]) {
        const program = start(command);
        await program.logged();
        await sleep(ms);
        assert.equal(await program.end('SIGTERM'), 143, program.stderr);
      }
    });
  }

  const scripts = {
    'the script that looks for Node': { path: kubeProxy, calls: 'find' },
    'the script of the image with iptables': {
      path: resolve(kubeProxy, '../../deploy/image/kube-proxy'),
      calls: 'cat',
    },
  };
  for (const [name, { path, calls }] of Object.entries(scripts)) {
    it(`SIGTERM ends ${name}`, async () => {
      writeFileSync(site.path(calls), '#!/bin/sh\nkill -TERM 1\n', { mode: 0o755 });
      const program = new ProcessOne([
        'env',
        `PATH=${site.directory}:${process.env.PATH}`,
        path,
        'kube-proxy',
      ]);
      assert.equal(await program.exitCode, 143, program.stderr);
    });
  }
});
