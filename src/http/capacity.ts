import type { Clock } from '../lib/clock.ts';
import { Connections } from './connections.ts';
import { Turns } from './turns.ts';

/** The time and the memory that all servers of a process share. */
export class Capacity {
  readonly turns: Turns;
  readonly connections: Connections;

  constructor(clock: Clock) {
    this.turns = new Turns(clock);
    this.connections = new Connections(clock, this.turns);
  }
}
