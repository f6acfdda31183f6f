# Images of kube-proxy-ts, from the root of the repository:
#   docker build --tag kube-proxy-ts .                           all modes; takes the place of upstream's image as it is
#   docker build --tag kube-proxy-ts --target nftables .         nftables and userspace mode: no shell, no other programs
# The programs know their commit with --build-arg KPT_COMMIT="$(git rev-parse HEAD)".
# scripts/image/rootfs.ts follows these steps on a machine without a container engine, and the tests run what it makes.

FROM node:24-bookworm-slim AS build
WORKDIR /src
COPY package.json package-lock.json .npmrc LICENSE ./
RUN npm ci --ignore-scripts
COPY scripts scripts
COPY src src
COPY test/cluster test/cluster
COPY deploy/image deploy/image
ARG KPT_COMMIT=unknown
RUN npm run build && node scripts/image/lay-out.ts image

FROM scratch AS nftables
COPY --from=build /src/image/nftables/ /
ENV PATH=/usr/local/bin MALLOC_ARENA_MAX=1 NODE_OPTIONS=--v8-pool-size=1
ENTRYPOINT ["/usr/local/bin/kube-proxy"]

FROM debian:bookworm-slim AS full
RUN apt-get update && apt-get install -y --no-install-recommends iptables kmod && rm -rf /var/lib/apt/lists/*
COPY --from=build /src/image/full/ /
ENV MALLOC_ARENA_MAX=1 NODE_OPTIONS=--v8-pool-size=1
ENTRYPOINT ["/usr/local/bin/kube-proxy"]
