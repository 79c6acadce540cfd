# The program as an image: the worker, unless another command is given. It needs DATABASE_URL, since the embedded database is left out.
ARG NODE_IMAGE=node:24-bookworm-slim
FROM ${NODE_IMAGE}

LABEL org.opencontainers.image.title="usage-export" \
  org.opencontainers.image.description="Nightly usage snapshots of a speech service in Postgres, and API keys that stay young."

WORKDIR /app
COPY package.json package-lock.json ./
# The lock file names this folder, although nothing of it is installed.
COPY tools/node-runtime/package.json tools/node-runtime/
# One layer, so that what is removed takes no place. Declarations and source maps are for editors, dist is for browsers.
RUN npm ci --omit=dev --omit=optional --ignore-scripts --no-audit --no-fund --cache=/tmp/npm \
  && find node_modules -type f \( -name '*.map' -o -name '*.d.ts' -o -name '*.d.mts' -o -name '*.d.cts' \) -delete \
  && rm -rf node_modules/echarts/dist node_modules/zrender/dist \
  && rm -rf /tmp/*

COPY migrations migrations
COPY src src
# Readable whatever the umask of the checkout was, and a command on the path. jobs.config.json delivers keys to /config/secrets.
RUN chmod -R go=rX package.json migrations src \
  && chmod a+x src/main.ts && ln -s /app/src/main.ts /usr/local/bin/usage-export \
  && install -d -o 1000 -g 1000 -m 700 /config/secrets

# Where jobs.config.json is looked for, apart from the program, so that a whole folder can be mounted.
WORKDIR /config
# A number: Kubernetes can't tell whether a name is root.
USER 1000:1000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=10s --start-period=30s CMD ["usage-export", "health"]
ENTRYPOINT ["usage-export"]
CMD ["start"]
