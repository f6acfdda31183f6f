import { flavourUnavailable } from '../iptables/flavours.ts';
import { runShortSoak } from './suite.ts';

runShortSoak('iptables-legacy', import.meta.url, flavourUnavailable('legacy'));
