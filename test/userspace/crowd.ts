/**
 * A process with many connections; they do not count against the test's own limit on open files.
 * `crowd.ts serve IP` greets every client and keeps the connection; it prints its port, then the number of connections
 * whenever that changes. `crowd.ts hold COUNT IP:PORT` opens and keeps COUNT connections and prints how many were greeted.
 * Both end when their input does.
 */
import { connect, createServer, type Socket } from 'node:net';

const atOnce = 100;
const tellMs = 50;

function serve(ip: string): void {
  let open = 0;
  const server = createServer((socket) => {
    open++;
    socket.on('error', () => socket.destroy());
    socket.on('close', () => open--);
    socket.resume();
    socket.write('!');
  });
  server.listen({ host: ip, port: 0, backlog: 4096 }, () => {
    const address = server.address();
    console.log(typeof address === 'object' ? address?.port : address);
    let printed = 0;
    setInterval(() => {
      if (open !== printed) console.log(open);
      printed = open;
    }, tellMs);
  });
}

async function hold(count: number, target: string): Promise<void> {
  const [host, port] = target.split(':');
  const sockets: Socket[] = [];
  let greeted = 0;
  while (sockets.length < count) {
    const some = Array.from({ length: Math.min(atOnce, count - sockets.length) }, () =>
      connect({ host, port: Number(port) }),
    );
    sockets.push(...some);
    await Promise.all(
      some.map(
        (socket) =>
          new Promise<void>((resolve) => {
            socket.once('data', () => {
              greeted++;
              resolve();
            });
            const failed = (reason: string) => {
              if (socket.bytesRead === 0)
                console.error(
                  `connection ${sockets.indexOf(socket)} after ${Math.round(performance.now())} ms: ${reason}`,
                );
              resolve();
            };
            socket.once('error', ({ message }) => failed(message));
            socket.once('close', () => failed('closed'));
          }),
      ),
    );
  }
  console.log(greeted);
}

process.stdin.on('end', () => process.exit(0)).resume();
const [task, first = '', target = ''] = process.argv.slice(2);
if (task === 'serve') serve(first);
else await hold(Number(first), target);
