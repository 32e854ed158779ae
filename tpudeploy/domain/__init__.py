"""The nouns: frozen data, standard library only. Start reading tpudeploy here."""
