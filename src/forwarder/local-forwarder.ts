import type { Clock } from '../lib/clock.ts';
import { Engine, type EngineOptions } from './engine.ts';
import type { Forwarder } from './forwarder.ts';

/** Makes a forwarder in the main thread, for little traffic. */
export function localForwarder(options: EngineOptions): Forwarder {
  const clock = handlingEventsFirst(options.clock, () => engine.loop.turn(0));
  const engine = new Engine({ ...options, clock });
  engine.loop.attach();
  return {
    setService: (key, service) => engine.setService(key, service),
    removeService: (key) => engine.removeService(key),
    listen: async (id, listening) => engine.listen(id, listening),
    unlisten: (id, endConnections) => engine.unlisten(id, endConnections),
    traffic: async () => engine.traffic(),
    connections: async () => engine.connections(),
    listeners: async () => engine.listeners(),
    outlook: async (protocol, to, client) => engine.outlook(protocol, to, client),
    bindings: async (key, start) => engine.bindings(key, start),
    close: async () => engine.close(),
  };
}

/**
 * A clock whose timers handle pending events before they run. On a busy machine a timeout may be due although the
 * event it waits for has already happened.
 */
function handlingEventsFirst(clock: Clock, handleEvents: () => void): Clock {
  return {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    setTimeout(run, ms) {
      let isCancelled = false;
      const timer = clock.setTimeout(() => {
        handleEvents();
        if (!isCancelled) run();
      }, ms);
      return {
        cancel() {
          isCancelled = true;
          timer.cancel();
        },
      };
    },
  };
}
