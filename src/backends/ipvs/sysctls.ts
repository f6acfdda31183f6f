import { isAtLeast, type KernelVersion, kernelVersion } from '../../kernel/probe.ts';
import { Sysctl } from '../../kernel/sysctl.ts';
import type { SystemFiles } from '../../kernel/system-files.ts';
import type { Logger } from '../../obs/log.ts';

export interface SysctlContext {
  readonly files: SystemFiles;
  readonly strictARP: boolean;
  readonly logger: Logger;
}

/** The first kernel that has net/ipv4/vs/conn_reuse_mode. */
const reuseModeKernel = { major: 4, minor: 1 };
/** From this kernel on, reused connections are rescheduled without a delay of one second. */
const reuseFixedKernel = { major: 5, minor: 9 };

/**
 * Sets what IPVS needs of the kernel. The IPv6 side needs the same settings, IPv4 in name only. A setting that is right
 * already is not written. Throws when one cannot be written, or the kernel's version is unknown.
 */
export function setSysctls({ files, strictARP, logger }: SysctlContext): void {
  const sysctl = new Sysctl(files);
  const ensure = (name: string, value: number) => {
    if (sysctl.ensure(name, value)) logger.info('Set a kernel parameter for IPVS', { sysctl: name, value });
  };
  // Without conntrack entries, packets from IPVS are not masqueraded.
  ensure('net/ipv4/vs/conntrack', 1);
  if (needsReuseMode(kernelVersion(files), logger)) ensure('net/ipv4/vs/conn_reuse_mode', 0);
  // Connections of a real server that is gone end with their next packet,
  ensure('net/ipv4/vs/expire_nodest_conn', 1);
  // and clients that stay with one that drains move on.
  ensure('net/ipv4/vs/expire_quiescent_template', 1);
  ensure('net/ipv4/ip_forward', 1);
  if (!strictARP) return;
  ensure('net/ipv4/conf/all/arp_ignore', 1);
  ensure('net/ipv4/conf/all/arp_announce', 2);
}

function needsReuseMode(version: KernelVersion, logger: Logger): boolean {
  if (isAtLeast(version, reuseFixedKernel)) return false;
  if (isAtLeast(version, reuseModeKernel)) return true;
  const kernel = `${version.major}.${version.minor}`;
  logger.error(undefined, 'Connections that reuse a port may stall: this kernel has no conn_reuse_mode', {
    kernel,
    minimum: `${reuseModeKernel.major}.${reuseModeKernel.minor}`,
  });
  return false;
}
