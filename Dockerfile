# syntax=docker/dockerfile:1
# Debian 13: the native HTTP server for Node 24 needs glibc 2.38. On another base Logring falls back to Node's own, slower
# one.
FROM node:24-trixie-slim AS build
WORKDIR /build
COPY package.json package-lock.json ./
RUN npm ci --no-audit --no-fund
COPY . .
RUN npm run build && find dist -name '*.map' -delete
RUN npm sbom --omit=dev --sbom-format=cyclonedx > sbom.json
# Of all native servers the one for this platform.
RUN mkdir native && cp node_modules/@btc-vision/uwebsockets.js/"uws_linux_$(node -p 'process.arch + "_" + process.versions.modules').node" native/ \
    && npm prune --omit=dev --no-audit --no-fund \
    && mkdir -p node_modules/@btc-vision && mv native node_modules/@btc-vision/uwebsockets.js

FROM node:24-trixie-slim AS base
RUN apt-get update && apt-get install -y --no-install-recommends libjemalloc2 && rm -rf /var/lib/apt/lists/*
ENV NODE_ENV=production
WORKDIR /logring
COPY --from=build /build/package.json /build/sbom.json ./
COPY --from=build /build/node_modules ./node_modules
COPY --from=build /build/dist/engine ./dist/engine
COPY --from=build /build/dist/ingest ./dist/ingest
COPY --from=build /build/dist/src ./dist/src
RUN mkdir /data && chown 1000:1000 /data
# By number, so that Kubernetes can see that it is not root.
USER 1000:1000

# Made-up traffic for compose.yaml: docker build --target generator
FROM base AS generator
COPY --from=build /build/dist/bench ./dist/bench
ENTRYPOINT ["node", "dist/bench/log-generator.js"]

FROM base AS logring
ENV LOGRING_HOST=0.0.0.0 LOGRING_DATA_DIR=/data
# Freed memory goes back to the system: see docs/operating.md, Running it.
ENV LD_PRELOAD=libjemalloc.so.2 MALLOC_CONF=background_thread:true,narenas:2,dirty_decay_ms:250,muzzy_decay_ms:0
# Where something else is preloaded in its place.
ENV MALLOC_ARENA_MAX=2 MALLOC_MMAP_THRESHOLD_=131072 MALLOC_TRIM_THRESHOLD_=131072
# Half as much as in Node 20 and 22; Node 24 lets each thread have eight times that.
ENV NODE_OPTIONS=--max-semi-space-size=8
VOLUME /data
EXPOSE 4000
HEALTHCHECK --interval=10s --timeout=5s --start-period=120s \
    CMD ["node", "-e", "const { env } = process; env.NODE_TLS_REJECT_UNAUTHORIZED = '0'; fetch((env.LOGRING_TLS_CERT || env.LOGRING_TLS_CERT_FILE ? 'https' : 'http') + '://127.0.0.1:' + (env.LOGRING_PORT || 4000) + '/livez').then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "dist/src/main.js"]
