import { flavourUnavailable } from '../iptables/flavours.ts';
import { runShortSoak } from './suite.ts';

runShortSoak('iptables', import.meta.url, flavourUnavailable('nft'));
