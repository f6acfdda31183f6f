import { defineFlag } from '../flag-set.ts';
import { bool, type FlagType, string } from '../flag-types.ts';
import type { FlagValues, ProxyFlag } from './flag.ts';

/**
 * Flags of earlier releases, so that old command lines keep working. Each use is reported and has no effect, except for
 * those of userspace mode, which upstream has removed.
 */
export const retiredFlags: readonly ProxyFlag[] = [
  ofUserspaceMode('udp-timeout', 'udpIdleTimeout', 'v1.25'),
  ofUserspaceMode('proxy-port-range', 'portRange', 'v1.30'),
  retired('boot-id-file', string, '', 'v1.36'),
  retired('machine-id-file', string, '', 'v1.36'),
  retired('add-dir-header', bool, false, 'v1.25'),
  retired('alsologtostderr', bool, false, 'v1.25'),
  retired('log-backtrace-at', string, '', 'v1.25'),
  retired('log-dir', string, '', 'v1.25'),
  retired('log-file', string, '', 'v1.25'),
  retired('log-file-max-size', string, '', 'v1.25'),
  retired('logtostderr', bool, false, 'v1.25'),
  retired('one-output', bool, false, 'v1.25'),
  retired('skip-headers', bool, false, 'v1.25'),
  retired('skip-log-headers', bool, false, 'v1.25'),
  retired('stderrthreshold', string, '', 'v1.25'),
];

function retired<T>(name: string, type: FlagType<T>, value: T, last: string): ProxyFlag {
  const deprecated = `${last} was the last release that knew it; it is ignored.`;
  return defineFlag({ name, type, default: value, write: () => {}, help: '', deprecated });
}

function ofUserspaceMode(name: string, field: 'udpIdleTimeout' | 'portRange', last: string): ProxyFlag {
  const deprecated = `${last} was the last release that knew it; in modes other than userspace it is ignored.`;
  const write = ({ draft }: FlagValues, value: string) => {
    if (value !== '') draft.userspace = { ...draft.userspace, [field]: value };
  };
  return defineFlag({ name, type: string, default: '', write, help: '', deprecated });
}
