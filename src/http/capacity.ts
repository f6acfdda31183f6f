import type { Clock } from '../lib/clock.ts';
import { Connections } from './connections.ts';
import { DateText } from './date-text.ts';
import { Turns } from './turns.ts';

/** The time and the memory that all servers of a process share, and the date. */
export class Capacity {
  readonly clock: Clock;
  readonly turns: Turns;
  readonly connections: Connections;
  readonly date: DateText;

  constructor(clock: Clock) {
    this.clock = clock;
    this.turns = new Turns(clock);
    this.connections = new Connections(clock, this.turns);
    this.date = new DateText(clock);
  }
}
