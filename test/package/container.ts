import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ImageSettings } from '../../scripts/image/rootfs.ts';

/** How a container engine would confine the program; the defaults are those of a privileged container. */
export interface Confinement {
  /** The only capabilities, such as `net_admin`; all when absent. When present, kernel settings are read-only. */
  readonly capabilities?: readonly string[];
  readonly uid?: number;
}

/** The environment of Debian images, unless an image sets another. */
const debianEnv = { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' };
const capabilityNames =
  `chown dac_override dac_read_search fowner fsetid kill setgid setuid setpcap linux_immutable
  net_bind_service net_broadcast net_admin net_raw ipc_lock ipc_owner sys_module sys_rawio sys_chroot sys_ptrace sys_pacct
  sys_admin sys_boot sys_nice sys_resource sys_time sys_tty_config mknod lease audit_write audit_control setfcap
  mac_override mac_admin syslog wake_alarm block_suspend audit_read perfmon bpf checkpoint_restore`.split(
    /\s+/,
  );

/**
 * Mounts what a container engine mounts. $1 is the root file system, read-only. $2 is a directory of the machine for
 * /var/lib/kube-proxy. Unless $3 is rw, kernel settings are read-only. The other arguments are the command of process 1.
 */
const script = `set -e
root=$1 files=$2 settings=$3
shift 3
mount --bind "$root" "$root"
mount --bind "$files" "$root/var/lib/kube-proxy"
mount -o remount,bind,ro "$root"
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
if [ "$settings" != rw ]; then
  mount --bind "$root/proc/sys" "$root/proc/sys"
  mount -o remount,bind,ro "$root/proc/sys"
fi
for directory in dev run; do mount -t tmpfs tmpfs "$root/$directory"; done
for device in null zero urandom; do
  : > "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
exec "$@"
`;

/** The program of an image, run by its entry point as process 1 in the root file system of the image. */
export class Container {
  readonly #child: ChildProcess;
  readonly ended: Promise<{ code: number | null; log: string }>;
  #log = '';

  constructor(
    root: string,
    { entrypoint, env }: ImageSettings,
    files: string,
    args: readonly string[],
    confinement: Confinement = {},
  ) {
    mkdirSync(join(root, 'var/lib/kube-proxy'), { recursive: true });
    const [program = '', ...first] = entrypoint;
    const variables = Object.entries({ ...debianEnv, ...env }).map(([name, value]) => `${name}=${value}`);
    const command = [
      ...['--mount', '--propagation', 'private', '--pid', '--fork', '--kill-child'],
      ...['sh', '-c', script, 'sh', root, files, confinement.capabilities ? 'ro' : 'rw'],
      ...['env', '-i', ...variables],
      ...['/usr/sbin/capsh', `--chroot=${root}`, ...restrictions(confinement)],
      ...[`--shell=${program}`, '--', ...first, ...args],
    ];
    const child = spawn('unshare', command, { stdio: ['ignore', 'ignore', 'pipe'] });
    this.#child = child;
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#log += text;
    });
    this.ended = new Promise((settle, reject) => {
      child.on('error', reject);
      child.on('close', (code) => settle({ code, log: this.#log }));
    });
  }

  get log(): string {
    return this.#log;
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** The status of the program from /proc, with its effective capabilities and user. */
  status(): string {
    return readFileSync(`/proc/${this.#pid}/status`, 'utf8');
  }

  /** Sends a signal to process 1 of the container. */
  signal(signal: NodeJS.Signals): void {
    process.kill(this.#pid, signal);
  }

  async kill(): Promise<void> {
    // Killing the other processes is not enough: a process that changed its privileges outlives its parent.
    if (this.isRunning) this.signal('SIGKILL');
    await this.ended;
  }

  get #pid(): number {
    const { pid } = this.#child;
    return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8'));
  }
}

function restrictions({ capabilities, uid }: Confinement): string[] {
  if (!capabilities) return [];
  const dropped = capabilityNames.filter((name) => !capabilities.includes(name)).map((name) => `cap_${name}`);
  if (uid === undefined) return [`--drop=${dropped.join()}`];
  // A user other than root has only ambient capabilities.
  const kept = capabilities.map((name) => `cap_${name}`).join();
  const ambient = kept === '' ? [] : [`--inh=${kept}`, `--addamb=${kept}`];
  return ['--keep=1', `--gid=${uid}`, `--uid=${uid}`, ...ambient];
}
