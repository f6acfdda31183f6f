import { HOUR } from '../../lib/duration.ts';
import { bool, duration, int32 } from '../flag-types.ts';
import { field, flag, type ProxyFlag } from './flag.ts';
import type { FlagValues } from './flag-values.ts';

const linux = (o: FlagValues) => o.draft.linux;
const conntrack = (o: FlagValues) => o.draft.linux.conntrack;

export const nodeFlags: readonly ProxyFlag[] = [
  flag(
    'conntrack-max-per-core',
    int32,
    32768,
    field(conntrack, 'maxPerCore'),
    'Connections to track per CPU core; 0 leaves the limit alone and --conntrack-min without effect.',
  ),
  flag(
    'conntrack-min',
    int32,
    131072,
    field(conntrack, 'min'),
    'Connections to track at least, however few cores there are.',
  ),
  flag(
    'conntrack-tcp-timeout-established',
    duration,
    24n * HOUR,
    field(conntrack, 'tcpEstablishedTimeout'),
    'Idle time after which an established TCP connection is forgotten; 0 leaves the value of the system.',
  ),
  flag(
    'conntrack-tcp-timeout-close-wait',
    duration,
    HOUR,
    field(conntrack, 'tcpCloseWaitTimeout'),
    'Time after which a TCP connection in CLOSE_WAIT is forgotten; 0 leaves the value of the system.',
  ),
  flag(
    'conntrack-tcp-be-liberal',
    bool,
    false,
    field(conntrack, 'tcpBeLiberal'),
    'Do not count TCP packets outside the window as invalid.',
  ),
  flag(
    'conntrack-udp-timeout',
    duration,
    0n,
    field(conntrack, 'udpTimeout'),
    'Idle time after which a UDP exchange without an answer is forgotten; 0 leaves the value of the system.',
  ),
  flag(
    'conntrack-udp-timeout-stream',
    duration,
    0n,
    field(conntrack, 'udpStreamTimeout'),
    'Idle time after which an answered UDP exchange is forgotten; 0 leaves the value of the system.',
  ),
  flag(
    'oom-score-adj',
    int32,
    -999,
    field(linux, 'oomScoreAdj'),
    'How readily the kernel kills this process when memory runs out, from -1000 (never) to 1000.',
  ),
];
